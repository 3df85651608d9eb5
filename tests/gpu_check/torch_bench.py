"""How fast PyTorch trains a model on made-up pictures, eagerly and compiled: writes JSON to a file, anew after each way of computing.

    torch_bench.py FILE --model resnet50 --classes 1000 --batch_size 256 --seconds 5 --device cuda:0 --precision bfloat16 --limit 110

The model is torchvision's, changed where it is not what Keras has. Channels last. A step is forward and backward of pictures that lie
on the device; one of `shoal bench model` has the copies of pictures, parameters and gradients besides, as a worker's has. The steps of
a window are given to the device one after the other, and waited for at its end.
"""
import argparse
import json
import os
import pathlib
import statistics
import time

WINDOWS = 5
WARM_UP_STEPS = 3
# Ways of computing, None as the operations come, others as torch.compile calls them; the next one is begun if as long as the longest took
# is left.
MODES = (None, "default", "reduce-overhead")


def make_model(torchvision, name, classes):
    model = getattr(torchvision.models, name)(weights=None, num_classes=classes)
    for block in model.modules():
        # Keras's ResNet-50, the first version, strides in the first convolution of a block.
        if isinstance(block, torchvision.models.resnet.Bottleneck):
            block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
    return model


def time_windows(step, wait, seconds):
    """Seconds a step takes, of each window, after a first step that has prepared all."""
    for _ in range(WARM_UP_STEPS):
        step()
    wait()
    begin = time.monotonic()
    for _ in range(WARM_UP_STEPS):
        step()
    wait()
    a_step = (time.monotonic() - begin) / WARM_UP_STEPS
    steps = max(1, round(seconds / WINDOWS / a_step))
    taken = []
    for _ in range(WINDOWS):
        begin = time.monotonic()
        for _ in range(steps):
            step()
        wait()
        taken.append((time.monotonic() - begin) / steps)
    return steps, taken


def conclude(modes, batch_size):
    """The fastest way, and whether a compiled one was timed, or why none was."""
    timed = {name: batch_size / statistics.median(mode["step_seconds"]) for name, mode in modes.items() if "step_seconds" in mode}
    failures = [f"{name}: {mode['failed']}" for name, mode in modes.items() if "failed" in mode and name != "eager"]
    compiled = True if any(name != "eager" for name in timed) else "; ".join(failures) or None
    best = {}
    if timed:
        best["mode"] = max(timed, key=timed.get)
        best["examples_per_second"] = timed[best["mode"]]
    return {"modes": modes, "compiled": compiled} | best


def bench(arguments, write):
    begin = time.monotonic()
    try:
        import torch
        import torchvision
    except ImportError as error:
        write({"missing": str(error)})
        return
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    device, batch_size = arguments.device, arguments.batch_size
    kind = device.split(":")[0]
    model = make_model(torchvision, arguments.model, arguments.classes).to(device, memory_format=torch.channels_last).train()
    loss_of = torch.nn.CrossEntropyLoss()
    pictures = torch.rand(batch_size, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, arguments.classes, (batch_size,), device=device)
    described = {"model": arguments.model, "classes": arguments.classes, "batch_size": batch_size, "precision": arguments.precision, "device": device,
                 "torch": torch.__version__, "torch_cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}

    def wait():
        if kind == "cuda":
            torch.cuda.synchronize()

    def time_mode(mode):
        torch.compiler.reset()
        forward = model if mode is None else torch.compile(model, mode=mode)

        def step():
            model.zero_grad(set_to_none=True)
            with torch.autocast(kind, dtype=torch.bfloat16, enabled=arguments.precision == "bfloat16"):
                loss = loss_of(forward(pictures), labels)
            loss.backward()

        begin = time.monotonic()
        step()
        wait()
        prepared = time.monotonic() - begin
        steps, taken = time_windows(step, wait, arguments.seconds)
        return {"prepare_seconds": round(prepared, 1), "window_steps": steps, "step_seconds": taken}

    modes, longest = {}, 0
    for mode in MODES:
        name = mode or "eager"
        mode_begin = time.monotonic()
        if mode_begin - begin + longest > arguments.limit:
            modes[name] = {"not_run": "limit"}
        else:
            # Kept if it crashes, or takes too long and is killed.
            modes[name] = {"failed": "it did not come to an end"}
            write(described | conclude(modes, batch_size))
            try:
                modes[name] = time_mode(mode)
            except Exception as error:  # pylint: disable=broad-except  # whatever its compilers raise
                modes[name] = {"failed": f"{type(error).__name__}: {str(error)[:500]}"}
            longest = max(longest, time.monotonic() - mode_begin)
        write(described | conclude(modes, batch_size))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--batch_size", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="for how long each way is timed")
    parser.add_argument("--device", required=True)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), required=True)
    parser.add_argument("--limit", type=float, required=True, help="seconds that all of it may take")
    arguments = parser.parse_args()

    def write(result):
        new = arguments.file.with_suffix(".new")
        new.write_text(json.dumps(result))
        os.replace(new, arguments.file)

    bench(arguments, write)


if __name__ == "__main__":
    main()

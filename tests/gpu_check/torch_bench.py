"""How fast PyTorch trains a model on made-up pictures: one line of JSON, or a reason why not.

    torch_bench.py MODEL BATCH_SIZE SECONDS DEVICE PRECISION

MODEL is one of torchvision's, of 1000 classes, PRECISION float32 or bfloat16 (autocast). Channels last, compiled where that can be
done. A step is forward and backward of pictures that lie on the device; one of `shoal bench model` has the copies of pictures,
parameters and gradients besides, as a worker's has.
"""
import json
import sys
import time


def main(name, batch_size, seconds, device, precision):
    try:
        import torch
        import torchvision
    except ImportError as error:
        return {"missing": str(error)}
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = getattr(torchvision.models, name)(weights=None).to(device, memory_format=torch.channels_last).train()
    loss_of = torch.nn.CrossEntropyLoss()
    pictures = torch.rand(batch_size, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch_size,), device=device)
    kind = device.split(":")[0]

    def step_of(forward):
        def step():
            model.zero_grad(set_to_none=True)
            with torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
                loss = loss_of(forward(pictures), labels)
            loss.backward()
            if kind == "cuda":
                torch.cuda.synchronize()
        return step

    compiled = True
    step = step_of(torch.compile(model))
    try:
        step()
    except Exception as error:  # pylint: disable=broad-except  # whatever its compilers raise
        compiled = str(error).splitlines()[0][:200]
        step = step_of(model)
    for _ in range(3):
        step()
    taken = []
    end = time.monotonic() + seconds
    while not taken or time.monotonic() < end:
        begin = time.monotonic()
        step()
        taken.append(time.monotonic() - begin)
    return {"model": name, "batch_size": batch_size, "precision": precision, "device": device, "compiled": compiled, "torch": torch.__version__,
            "step_seconds": taken, "examples_per_second": batch_size / sorted(taken)[len(taken) // 2]}


if __name__ == "__main__":
    model_name, batch, for_seconds, on, in_precision = sys.argv[1:]
    print(json.dumps(main(model_name, int(batch), float(for_seconds), on, in_precision)))

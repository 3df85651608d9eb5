"""What is made of what compute-sanitizer writes."""
from programs import Ended
from sanitizer import count_errors, find_program, judge, split_errors

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at void shoal::cuda::RunItems<shoal::cuda::Add<float>>(T1, long)+0x70 in /source/kernels/binary.h:12
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000000 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x1] in op_conformance_test
=========\x20
========= Invalid __global__ read of size 16 bytes
=========     at cudnn_infer_gemm+0x1b0
=========     by thread (1,0,0) in block (0,0,0)
=========\x20
========= Program hit cudaErrorInvalidValue (error 1) due to "invalid argument" on CUDA API call to cudaMemcpyAsync.
=========     Saved host backtrace up to driver entry point at error
=========\x20
========= ERROR SUMMARY: 3 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void shoal::cuda::RunBlocks<shoal::cuda::Softmax>(T1)+0x90 in softmax.h:13
=========     and Read access at void shoal::cuda::RunBlocks<shoal::cuda::Softmax>(T1)+0xa0 in softmax.h:14 [2048 hazards]
=========\x20
========= Warning: Race reported between Read access at void shoal::cuda::RunBlocks<shoal::cuda::Sum>(T1)+0x90
=========     and Write access at void shoal::cuda::RunBlocks<shoal::cuda::Sum>(T1)+0xa0 [2 hazards]
=========\x20
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
TESTS = "[ RUN      ] A.B\n[       OK ] A.B (1 ms)\n"


def test_errors_are_counted_by_kernel():
    errors, warnings = count_errors(MEMCHECK)
    assert warnings == {}
    ours, others = split_errors(errors)
    assert ours == {"void shoal::cuda::RunItems<shoal::cuda::Add<float>>(T1, long)": 1}
    assert others == {"cudnn_infer_gemm": 1,
                      'Program hit cudaErrorInvalidValue (error 1) due to "invalid argument" on CUDA API call to cudaMemcpyAsync.': 1}


def test_a_kernel_of_a_source_in_a_folder_of_the_host_is_counted():
    text = MEMCHECK.replace("/source/kernels/binary.h", "/Host/kernels/host_binary.h")
    assert text != MEMCHECK and count_errors(text) == count_errors(MEMCHECK)


def test_a_race_is_one_error_and_a_warning_is_none():
    assert count_errors(RACECHECK) == ({"void shoal::cuda::RunBlocks<shoal::cuda::Softmax>(T1)": 1},
                                       {"void shoal::cuda::RunBlocks<shoal::cuda::Sum>(T1)": 1})


def test_ours_are_judged():
    assert judge("memcheck", "a_test", [Ended(9, TESTS, 1), Ended(0, TESTS, 2)], [MEMCHECK, CLEAN])["ok"] is False
    theirs = MEMCHECK.replace("shoal::", "cudnn::")
    entry = judge("memcheck", "a_test", [Ended(9, TESTS, 1), Ended(0, TESTS, 2)], [theirs, CLEAN])
    assert entry["ok"] is True and entry["ran"] == 2 and sum(entry["others"].values()) == 3


def test_a_suite_that_did_not_run_is_neither_right_nor_wrong():
    assert judge("memcheck", "a_test", [Ended(None, "", 0, "budget")], [""])["not_run"] == "budget"
    assert judge("memcheck", "a_test", [Ended(None, TESTS, 9, "timeout"), Ended(0, TESTS, 1)], ["", CLEAN])["ok"] is None
    assert judge("memcheck", "a_test", [Ended(0, "", 1)], [CLEAN])["ok"] is None
    entry = judge("memcheck", "a_test", [Ended(1, TESTS, 1)], ["========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer\n"])
    assert entry["ok"] is None and "does not support" in entry["why"]


def test_it_is_looked_for_beside_python(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "lib/python3.12/site-packages/nvidia/cu13/bin/compute-sanitizer"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    assert find_program(tmp_path / "bin/python") in (str(program), *(found for found in [find_program("/nowhere/bin/python")] if found))

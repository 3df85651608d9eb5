"""Options of the tests that draw from a seed, and the seeds, as pytest wants them in a conftest.py."""


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=None, help="of the chaos tests: replays one round, as far as real time allows")
    parser.addoption("--rounds", type=int, default=2, help="of each chaos test, each with a seed of its own")


def pytest_generate_tests(metafunc):
    if "chaos_seed" not in metafunc.fixturenames:
        return
    import random
    seed, rounds = metafunc.config.getoption("seed"), metafunc.config.getoption("rounds")
    seeds = [seed] if seed is not None else [random.SystemRandom().randrange(1 << 30) for _ in range(rounds)]
    metafunc.parametrize("chaos_seed", seeds)

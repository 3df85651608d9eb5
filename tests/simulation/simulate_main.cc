// shoal-simulate: runs simulations of seeds, in parallel processes, and names those that fail.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "common/base/usable_cores.h"
#include "tests/simulation/simulation.h"

namespace shoal {
namespace {

// A seed takes milliseconds; one that takes this long never ends.
constexpr unsigned kMaxSeconds = 60;

// One record on the pipe from a child: a seed is begun, or has failed.
struct Record {
  uint64_t seed = 0;
  uint32_t failure_bytes = 0;  // which follow; 0: begun, or well
};

void RunSeeds(uint64_t first, uint64_t last, uint64_t stride, int out) {
  for (uint64_t seed = first; seed <= last; seed += stride) {
    Record record{.seed = seed};
    if (write(out, &record, sizeof(record)) != sizeof(record)) _exit(2);
    alarm(kMaxSeconds);
    const std::string failure = Simulate(seed, /*tracing=*/false).failure;
    if (failure.empty()) continue;
    record.failure_bytes = static_cast<uint32_t>(failure.size());
    std::string text(sizeof(record), '\0');
    std::memcpy(text.data(), &record, sizeof(record));
    text += failure;
    if (write(out, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(2);
  }
}

bool ReadAll(int in, void* out, size_t size) {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = read(in, to, size);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// Runs every `stride`th seed from `first` on in a child, again after one that ends the child.
uint64_t RunStripe(uint64_t first, uint64_t last, uint64_t stride) {
  uint64_t failures = 0;
  while (first <= last) {
    int ends[2];
    if (pipe(ends) != 0) return failures + 1;
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      RunSeeds(first, last, stride, ends[1]);
      _exit(0);
    }
    close(ends[1]);
    uint64_t at = first;
    for (Record record; ReadAll(ends[0], &record, sizeof(record));) {
      at = record.seed;
      if (record.failure_bytes == 0) continue;
      std::string failure(record.failure_bytes, '\0');
      ReadAll(ends[0], failure.data(), failure.size());
      std::printf("seed %lu FAILED %s\n", at, failure.c_str());
      std::fflush(stdout);
      ++failures;
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    std::printf("seed %lu FAILED: the process died of %s %d\n", at,
                WIFSIGNALED(status) ? "signal" : "exit",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    std::fflush(stdout);
    ++failures;
    first = at + stride;
  }
  return failures;
}

int RunAll(uint64_t first, uint64_t last, uint64_t jobs) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<uint64_t> failures(jobs);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < jobs; ++i) {
    threads.emplace_back(
        [&failures, i, first, last, jobs] { failures[i] = RunStripe(first + i, last, jobs); });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t failed = 0;
  for (const uint64_t count : failures) failed += count;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%lu seeds, %lu failed, %.1f s\n", last - first + 1, failed, seconds.count());
  return failed == 0 ? 0 : 1;
}

int RunOne(uint64_t seed, bool tracing) {
  const SimulationResult result = Simulate(seed, tracing);
  std::fwrite(result.trace.data(), 1, result.trace.size(), stdout);
  std::printf("seed %lu: %s, %lu events, %.3f s simulated\n", seed,
              result.failure.empty() ? "well" : result.failure.c_str(), result.events,
              std::chrono::duration<double>(result.simulated).count());
  return result.failure.empty() ? 0 : 1;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  CLI::App app("Runs whole clusters in simulation, each drawn from a seed, and checks them.");
  std::string seeds;
  uint64_t seed = 0;
  bool tracing = false;
  uint64_t jobs = static_cast<uint64_t>(shoal::UsableCores());
  auto* range = app.add_option("--seeds", seeds, "A..B: these seeds, both ends included");
  auto* one = app.add_option("--seed", seed, "One seed, in this process")->excludes(range);
  app.add_flag("--trace", tracing, "With --seed: print everything that happens")->needs(one);
  app.add_option("--jobs", jobs, "Processes")->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  if (one->count() > 0) return shoal::RunOne(seed, tracing);
  const size_t dots = seeds.find("..");
  if (dots == std::string::npos) {
    std::fprintf(stderr, "give --seed N or --seeds A..B\n");
    return 64;
  }
  return shoal::RunAll(std::stoull(seeds.substr(0, dots)), std::stoull(seeds.substr(dots + 2)),
                       jobs);
}

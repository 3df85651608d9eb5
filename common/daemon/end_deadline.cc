#include "common/daemon/end_deadline.h"

#include <pthread.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// Max wait for the log to be written.
constexpr std::chrono::milliseconds kLogPatience{500};

// Work by the name of its thread. Idle threads have already ended by then.
constexpr std::pair<const char*, const char*> kWork[] = {
    {"compute", "a batch is still being computed"},
    {"files", "a file is still being read or written"},
    {"brief files", "the lease of the run is still being read or written"},
    {"input", "examples are still being read"},
    {"http-handler", "an HTTP reply is still being made"},
};

std::set<std::string> NamesOfThreads() {
  std::set<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator task("/proc/self/task", error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::ifstream file(task->path() / "comm");
    std::string name;
    if (std::getline(file, name)) names.insert(name);
  }
  return names;
}

std::string WhatStillRuns() {
  const std::set<std::string> names = NamesOfThreads();
  std::vector<std::string> found;
  for (const auto& [name, work] : kWork) {
    if (names.contains(name)) found.emplace_back(work);
  }
  return found.empty() ? "its threads: " + absl::StrJoin(names, ", ") : absl::StrJoin(found, ", ");
}

}  // namespace

EndDeadline::EndDeadline(std::chrono::milliseconds patience, int exit_code)
    : patience_(patience), exit_code_(exit_code), thread_([this] { Run(); }) {}

EndDeadline::~EndDeadline() {
  {
    MutexLock lock(&mutex_);
    over_ = true;
  }
  changed_.NotifyOne();
  thread_.join();
}

void EndDeadline::Run() {
  pthread_setname_np(pthread_self(), "end-deadline");
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  {
    MutexLock lock(&mutex_);
    while (!over_ && changed_.WaitUntil(&mutex_, deadline)) {
    }
    if (over_) return;
  }
  LogWarning(absl::StrCat("ends now; some work cannot be stopped: ", WhatStillRuns()),
             {{"exit_code", absl::StrCat(exit_code_)}});
  FlushLog(kLogPatience);
  _exit(exit_code_);
}

}  // namespace shoal

#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/local_cluster/child_process.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {

inline constexpr auto kDeadline = std::chrono::minutes(5);

inline std::string LastLines(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const size_t first = lines.size() > 20 ? lines.size() - 20 : 0;
  return absl::StrJoin(lines.begin() + first, lines.end(), "\n") + "\n";
}

// Returns true once the process has ended, even as a zombie of another parent; false after the
// deadline.
inline bool AwaitEnd(pid_t pid) {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return errno == ESRCH;
  pollfd ended = {.fd = descriptor, .events = POLLIN};
  const int count = poll(&ended, 1, std::chrono::milliseconds(kDeadline).count());
  close(descriptor);
  return count == 1;
}

// Returns true once a SIGTERM to the process is pending; false if the process has ended, or after
// the deadline.
inline bool AwaitPendingSigterm(pid_t pid) {
  const std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < deadline) {
    const std::string status = FileContentOrEmpty("/proc/" + std::to_string(pid) + "/status");
    const size_t pending = status.find("ShdPnd:");
    if (pending == std::string::npos || status.find("\nState:\tZ") != std::string::npos)
      return false;
    const std::string mask = status.substr(pending + 7, status.find('\n', pending) - pending - 7);
    if (std::stoull(mask, nullptr, 16) >> (SIGTERM - 1) & 1) return true;
    poll(nullptr, 0, /*timeout_ms=*/1);
  }
  return false;
}

class TrainProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    // This program may run under nohup or in the background of a script, which ignore these
    // signals. Its children must not inherit that.
    for (const int signal : {SIGHUP, SIGINT}) std::signal(signal, [](int) {});
    std::filesystem::create_directories(root_ + "/bin");
    std::filesystem::create_directories(root_ + "/fake");
    // `shoal` looks for the daemons in its own directory.
    std::filesystem::copy_file(SHOAL_BINARY, root_ + "/bin/shoal");
    for (const char* name : {"shoal-coordinator", "shoal-ps", "shoal-worker"}) {
      std::filesystem::create_symlink(FAKE_DAEMON_BINARY, root_ + "/bin/" + name);
    }
    WriteArray(/*units=*/1);
    WriteJob(/*batch_size=*/32);
  }

  void TearDown() override {
    if (HasFailure()) PrintLastWords();
    train_.reset();
  }

  // Prints how `shoal train` ended, its output, and the end of every task's log.
  void PrintLastWords() {
    const auto ended = train_ != nullptr ? train_->TryReap() : std::nullopt;
    std::cout << "shoal train: " << (ended.has_value() ? ended->ToString() : "still running")
              << "; it said:\n"
              << LastLines(output_);
    std::error_code no_logs;
    for (const auto& log : std::filesystem::directory_iterator(root_ + "/run/logs", no_logs)) {
      std::cout << log.path().filename().string() << ":\n" << LastLines(FileContent(log.path()));
    }
  }

  // A Dense layer with this many inputs and units.
  void WriteJob(int batch_size, uint64_t units = 1) {
    std::ofstream(root_ + "/job.json")
        << R"({"name": "small", "loss": "mean_squared_error", "optimizer": "sgd", "steps": 9,
               "data": {"training": {"images": "data", "labels": "data"}},
               "model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
                 {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, )"
        << units << R"(]}}, {"class_name": "Dense", "config": {"name": "y", "units": )" << units
        << "}}]}}, \"batch_size\": " << batch_size << "}";
  }

  // Writes the data of such a job: one example of zeros, as NPY.
  void WriteArray(uint64_t units) {
    std::string header =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, " + std::to_string(units) + "), }";
    header.resize(117, ' ');
    std::ofstream(root_ + "/data", std::ios::binary)
        << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << "\n"
        << std::string(units, '\0');
  }

  // Writes the commands of a fake task, one per line.
  void Behave(const std::string& task, const std::string& commands) {
    std::ofstream(root_ + "/fake/" + task) << commands << "\n";
  }
  void Touch(const std::string& file) { std::ofstream(root_ + "/fake/" + file) << ""; }

  void Start(const std::vector<std::string>& flags = {}, std::vector<std::string> variables = {}) {
    variables.insert(variables.end(),
                     {"FAKE_DAEMON_DIR=" + root_ + "/fake", "TF_CONFIG=somebody else's"});
    std::vector<std::string> arguments = {"train", root_ + "/job.json", "--run_dir",
                                          root_ + "/run"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.begin(),
                     {"-c", "exec \"$@\" " + redirection_, "sh", root_ + "/bin/shoal"});
    auto train = ChildProcess::Spawn(
        {.program = "/bin/sh", .arguments = arguments, .environment = variables});
    ASSERT_TRUE(train.ok()) << train.status();
    train_ = *std::move(train);
    output_.clear();
  }

  // Reads the output of `shoal train` until it contains `text`. Returns false at its end or after
  // `patience`.
  bool AwaitOutput(const std::string& text, std::chrono::milliseconds patience = kDeadline) {
    const std::chrono::steady_clock::time_point deadline =
        std::chrono::steady_clock::now() + patience;
    while (output_.find(text) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      pollfd readable = {.fd = train_->output(), .events = POLLIN};
      if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count())) != 1)
        return false;
      char buffer[4096];
      const ssize_t size = read(train_->output(), buffer, sizeof(buffer));
      if (size == 0) return false;
      if (size > 0) output_.append(buffer, size);
    }
    return true;
  }

  // Waits for the exit of `shoal train` and reads all its output. Returns the exit cause.
  std::string AwaitExit() {
    EXPECT_FALSE(AwaitOutput("no such text ever comes"));
    if (!AwaitEnd(train_->pid())) return "still running";
    return train_->TryReap()->ToString();
  }

  pid_t Pid(const std::string& task) {
    return std::atoi(FileContent(root_ + "/fake/" + task + ".pid").c_str());
  }

  // Waits until all tasks have begun: each prints this warning, and the console shows it.
  static constexpr char kHello[] = "say 2026-11-21T13:00:00.123Z W x hello\n";
  void AwaitHello(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      ASSERT_TRUE(AwaitOutput("[" + name + "] 2026-11-21T13:00:00.123Z W x hello")) << output_;
    }
  }

  const TemporaryDirectory directory_;
  const std::string& root_ = directory_.path();
  std::string redirection_;  // shell redirection of the program
  std::unique_ptr<ChildProcess> train_;
  std::string output_;
};

}  // namespace shoal

#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace shoal {

// A pipe that takes little and that nobody reads until the test does.
class UnreadPipe {
 public:
  UnreadPipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
    capacity_ = fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  ~UnreadPipe() {
    CloseReader();
    CloseWriter();
  }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;

  int write_end() const { return ends_[1]; }
  int capacity() const { return capacity_; }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  void CloseWriter() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

  // Until a writer of more than the pipe takes is held up. For a minute at most.
  void WaitUntilFull() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    pollfd writable = {.fd = ends_[1], .events = POLLOUT};
    while (poll(&writable, 1, 0) == 1 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }

  // Reads until `text` is in all that was read so far, or to its end; returns all of it. For a
  // minute at most.
  std::string ReadUntil(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (all_.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      pollfd readable = {.fd = ends_[0], .events = POLLIN};
      char buffer[4096];
      if (poll(&readable, 1, 1000) != 1) continue;
      const ssize_t size = read(ends_[0], buffer, sizeof(buffer));
      if (size <= 0) break;
      all_.append(buffer, size);
    }
    return all_;
  }

 private:
  int ends_[2];
  int capacity_;
  std::string all_;
};

}  // namespace shoal

#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace shoal {

// A pipe with a small buffer. Only the test reads it.
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

  // Waits until the pipe is full and blocks its writer; at most a minute.
  void WaitUntilFull() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    pollfd writable = {.fd = ends_[1], .events = POLLOUT};
    while (poll(&writable, 1, 0) == 1 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }

  // Reads until all output so far contains `text`, or to the end; returns all of it. Waits at most
  // a minute.
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

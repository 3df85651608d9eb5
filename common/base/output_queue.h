#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shoal {

// Text on its way to a descriptor, such as standard error, that nobody may be reading: a bounded
// buffer and a thread that writes it, so that whoever has something to say never waits. The
// descriptor stays blocking, since its description may be shared with other processes.
//
// What does not fit is lost: from the first line that found no room until half of the buffer is
// free again, so that there is one gap and not many; a line then says how many were lost. So is
// what the descriptor refuses (a reader that is gone, a full disk). Thread-safe.
class OutputQueue {
 public:
  struct Options {
    int descriptor = -1;      // stays the caller's, open
    std::string thread_name;  // at most 15 characters
    size_t capacity_bytes = 1 << 20;
    // The line, with its newline, that says how many are missing. Called on the thread, holding no
    // lock, maybe after the queue's destruction.
    std::function<std::string(uint64_t lost)> describe_loss;
  };
  // Starts the thread; it takes no signals.
  explicit OutputQueue(Options options);
  // What is not written yet is dropped: Flush() first. Does not wait for a reader: a thread that is
  // held up by one is left behind.
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // `text`: whole lines, which are kept or lost together.
  void Write(std::string_view text);
  // Waits until all is written, for `patience` at most; false when it is not.
  bool Flush(std::chrono::milliseconds patience);
  // The same for a signal handler of a process that is about to die: takes no lock.
  void FlushInSignalHandler(std::chrono::milliseconds patience) const;
  // Lines lost so far.
  uint64_t lost() const;
  // Why the descriptor first refused something, as errno; 0: it never did.
  int refusal() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;  // the thread's too, which may outlive this
};

}  // namespace shoal

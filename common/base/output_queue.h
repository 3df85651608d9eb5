#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shoal {

// A queue of text for a descriptor, such as standard error, that may have no reader. A thread
// writes its bounded buffer, so Write() never waits. The descriptor stays blocking, because other
// processes may share its description.
//
// Lines that do not fit are lost, from the first one until half of the buffer is free again. This
// makes one gap instead of many. A line then reports the number of lost lines. Lines that the
// descriptor rejects (reader gone, disk full) are lost too. Thread-safe.
class OutputQueue {
 public:
  struct Options {
    int descriptor = -1;      // owned by the caller; must stay open
    std::string thread_name;  // at most 15 characters
    size_t capacity_bytes = 1 << 20;
    // Returns the line, with its newline, that reports the loss. Called on the writing thread
    // without a lock, possibly after the queue's destruction.
    std::function<std::string(uint64_t lost)> describe_loss;
  };
  // Starts the thread, which blocks all signals.
  explicit OutputQueue(Options options);
  // Drops unwritten text, so call Flush() first. Does not wait for a reader. A thread that waits
  // for one keeps running.
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // Queues `text`, which must be whole lines. They are kept or lost together.
  void Write(std::string_view text);
  // Waits at most `patience` until all text is written. Returns false if it is not.
  bool Flush(std::chrono::milliseconds patience);
  // The same for a signal handler in a crashing process. Takes no lock.
  void FlushInSignalHandler(std::chrono::milliseconds patience) const;
  // The number of lines lost so far.
  uint64_t lost() const;
  // The errno of the descriptor's first failed write; 0 if none failed.
  int write_error() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this
};

}  // namespace shoal

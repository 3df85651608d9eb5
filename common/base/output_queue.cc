#include "common/base/output_queue.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <thread>
#include <utility>

#include "common/base/mutex.h"

namespace shoal {
namespace {

// Max bytes in one write, in whole lines if possible. A pipe takes this much at once. This keeps
// lines of processes that share it from mixing.
constexpr size_t kPieceBytes = 4096;

// Writes all of `text`. Returns 0, or errno.
int WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(descriptor, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(size);
    } else if (errno == EAGAIN) {  // a process that shares the description made it nonblocking
      pollfd writable = {.fd = descriptor, .events = POLLOUT};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

uint64_t CountLines(std::string_view text) {
  return std::max<uint64_t>(1, std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

// A ring of bytes instead of a list of strings. After a crash, the thread still writes it without
// the heap, which may be corrupt.
struct OutputQueue::State {
  explicit State(Options given)
      : options(std::move(given)),
        capacity(options.capacity_bytes),
        ring(std::make_unique_for_overwrite<char[]>(capacity)) {}

  const Options options;
  const size_t capacity;
  Mutex mutex;
  CondVar changed;
  // Uses physical memory only up to its highest fill level.
  std::unique_ptr<char[]> ring ABSL_GUARDED_BY(mutex);
  size_t begin ABSL_GUARDED_BY(mutex) = 0;         // start of the queued bytes
  size_t size ABSL_GUARDED_BY(mutex) = 0;          // bytes queued or being written
  bool gap ABSL_GUARDED_BY(mutex) = false;         // a line did not fit; takes no lines
  bool failing ABSL_GUARDED_BY(mutex) = false;     // the last write failed
  uint64_t unreported ABSL_GUARDED_BY(mutex) = 0;  // lost lines not reported yet
  bool reporting ABSL_GUARDED_BY(mutex) = false;   // the line that reports them is being made
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::atomic<uint64_t> lost = 0;
  std::atomic<int> write_error = 0;
  std::atomic<size_t> unwritten = 0;  // = size; for readers without the lock

  void CountLost(uint64_t lines) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    unreported += lines;
    lost += lines;
  }

  bool to_report() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return unreported > 0 && !failing && size <= capacity / 2;
  }

  bool all_written() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return size == 0 && !reporting && !to_report();
  }

  void Resize(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    size = bytes;
    unwritten = bytes;
    changed.NotifyAll();
  }

  void Write(std::string_view text) {
    MutexLock lock(&mutex);
    gap = gap || text.size() > capacity - size;
    if (gap) {
      CountLost(CountLines(text));
      changed.NotifyAll();
      return;
    }
    const size_t end = (begin + size) % capacity;
    const size_t before_wrap = std::min(text.size(), capacity - end);
    std::copy_n(text.data(), before_wrap, ring.get() + end);
    std::copy_n(text.data() + before_wrap, text.size() - before_wrap, ring.get());
    Resize(size + text.size());
  }

  // Copies the oldest lines that fit into `buffer`, or the beginning of a longer line.
  std::string_view NextPiece(std::array<char, kPieceBytes>* buffer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const size_t bytes = std::min(size, buffer->size());
    for (size_t i = 0; i < bytes; ++i) (*buffer)[i] = ring[(begin + i) % capacity];
    const std::string_view piece(buffer->data(), bytes);
    const size_t newline = piece.rfind('\n');
    return newline == std::string_view::npos ? piece : piece.substr(0, newline + 1);
  }

  void Run() {
    pthread_setname_np(pthread_self(), options.thread_name.c_str());
    std::array<char, kPieceBytes> buffer;
    while (true) {
      std::string_view piece;
      uint64_t lines_lost = 0;
      {
        MutexLock lock(&mutex);
        while (size == 0 && !to_report() && !stopping) changed.Wait(&mutex);
        if (stopping) return;
        if (to_report()) {
          lines_lost = std::exchange(unreported, 0);
          reporting = true;
          gap = false;
        } else {
          piece = NextPiece(&buffer);
        }
      }
      if (lines_lost > 0) {
        Write(options.describe_loss(lines_lost));
        MutexLock lock(&mutex);
        reporting = false;
        changed.NotifyAll();
        continue;
      }
      const int error = WriteAll(options.descriptor, piece);
      MutexLock lock(&mutex);
      failing = error != 0;
      if (failing) {
        if (write_error == 0) write_error = error;
        gap = false;  // tries again with later lines
        CountLost(CountLines(piece));
      }
      begin = (begin + piece.size()) % capacity;
      Resize(size - piece.size());
    }
  }
};

OutputQueue::OutputQueue(Options options) : state_(std::make_shared<State>(std::move(options))) {
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  std::thread([state = state_] { state->Run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

OutputQueue::~OutputQueue() {
  MutexLock lock(&state_->mutex);
  state_->stopping = true;
  state_->changed.NotifyAll();
}

void OutputQueue::Write(std::string_view text) { state_->Write(text); }

bool OutputQueue::Flush(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  MutexLock lock(&state_->mutex);
  while (!state_->all_written()) {
    if (!state_->changed.WaitUntil(&state_->mutex, deadline)) break;
  }
  return state_->all_written();
}

void OutputQueue::FlushInSignalHandler(std::chrono::milliseconds patience) const {
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int64_t left = patience.count(); left > 0 && state_->unwritten > 0; --left) {
    nanosleep(&kPause, nullptr);
  }
}

uint64_t OutputQueue::lost() const { return state_->lost; }

int OutputQueue::write_error() const { return state_->write_error; }

}  // namespace shoal

#include "worker/input/batch_source.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/memory/memory_limit.h"
#include "worker/input/expected_steps.h"

namespace shoal {
namespace {

using BatchOr = absl::StatusOr<std::unique_ptr<LoadedBatch>>;

// Kept ready, if that is at least kLeastPrefetch batches and no more than kMostPrefetch.
constexpr uint64_t kPrefetchBytes = 64 << 10;
constexpr uint64_t kLeastPrefetch = 4;
constexpr uint64_t kMostPrefetch = 16;

uint64_t BatchBytes(const BatchSource::Options& options) {
  const Dataset& dataset = *options.dataset;
  const auto numbers = static_cast<uint64_t>(ElementCount(dataset.example_shape()) +
                                             ElementCount(dataset.label_shape()));
  return options.plan.Range(0).count * numbers * sizeof(float);
}

}  // namespace

// The thread prepares the expected steps in their order, at most `prefetch` of them ahead.
// Everything shared is behind one lock, which nobody holds while reading.
class BatchSource::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)),
        capacity_(static_cast<size_t>(
            std::max(options_.prefetch.value_or(Prefetch(BatchBytes(options_))), 0))),
        thread_([this] { Run(); }) {}

  ~Impl() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      work_.NotifyAll();
      settled_.NotifyAll();
      while (takers_ > 0) settled_.Wait(&mutex_);
    }
    thread_.join();
  }

  void Expect(uint64_t first_step, uint64_t count) {
    const uint64_t total = options_.plan.total_steps();
    const uint64_t begin = std::min(first_step, total);
    const uint64_t end = begin + std::min(count, total - begin);
    bool wake;
    {
      MutexLock lock(&mutex_);
      expected_.Add(begin, end);
      wake = ToBeWoken();
    }
    if (wake) work_.NotifyOne();
  }

  void Forget() {
    MutexLock lock(&mutex_);
    expected_.Clear();
    for (auto& [step, batch] : prepared_) {
      if (batch.ok()) Keep(*std::move(batch));
    }
    prepared_.clear();
    // What the thread is reading now belongs to nobody.
    reading_.reset();
    ++timeline_;
    settled_.NotifyAll();
  }

  BatchOr Take(uint64_t step) {
    if (step >= options_.plan.total_steps()) {
      return absl::OutOfRangeError(absl::StrCat("step ", step, " was asked for; the plan has ",
                                                options_.plan.total_steps(), " steps"));
    }
    {
      MutexLock lock(&mutex_);
      ++takers_;
    }
    BatchOr batch = TakeCounted(step);
    MutexLock lock(&mutex_);
    --takers_;
    if (stopping_) settled_.NotifyAll();
    return batch;
  }

  void Recycle(std::unique_ptr<LoadedBatch> batch) {
    MutexLock lock(&mutex_);
    Keep(std::move(batch));
  }

  bool IsPrepared(uint64_t step) {
    MutexLock lock(&mutex_);
    return prepared_.contains(step);
  }
  uint64_t prepared() {
    MutexLock lock(&mutex_);
    return prepared_.size();
  }

 private:
  BatchOr TakeCounted(uint64_t step) {
    std::unique_ptr<LoadedBatch> memory;
    std::optional<BatchOr> prepared;
    bool wake;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && reading_ == step) settled_.Wait(&mutex_);
      if (stopping_) {
        return absl::CancelledError(absl::StrCat("step ", step, ": the batch source is closed"));
      }
      expected_.Remove(step);
      if (auto found = prepared_.extract(step)) {
        prepared = std::move(found.mapped());
      } else {
        memory = Spare();
      }
      wake = ToBeWoken();
    }
    if (wake) work_.NotifyOne();
    if (prepared.has_value()) return *std::move(prepared);
    return Load(step, std::move(memory));
  }

  void Run() {
    pthread_setname_np(pthread_self(), "input");
    for (;;) {
      uint64_t step;
      uint64_t timeline;
      std::unique_ptr<LoadedBatch> memory;
      {
        MutexLock lock(&mutex_);
        std::optional<uint64_t> next;
        while (!stopping_ && !(next = NextToPrepare()).has_value()) {
          asleep_ = true;
          work_.Wait(&mutex_);
        }
        asleep_ = false;
        if (stopping_) return;
        step = *next;
        timeline = timeline_;
        reading_ = step;
        memory = Spare();
      }
      BatchOr batch = Load(step, std::move(memory));
      MutexLock lock(&mutex_);
      if (timeline == timeline_) {
        reading_.reset();
        prepared_.emplace(step, std::move(batch));
        settled_.NotifyAll();
      } else if (batch.ok()) {
        Keep(*std::move(batch));
      }
    }
  }

  std::optional<uint64_t> NextToPrepare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (prepared_.size() >= capacity_) return std::nullopt;
    return expected_.FirstNotIn(prepared_);
  }

  // The thread has slept until now, and is to be notified, once the lock is given back. Waking it
  // for each batch would cost more than a small batch does.
  bool ToBeWoken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!asleep_ || prepared_.size() > capacity_ / 2 || !NextToPrepare().has_value()) return false;
    asleep_ = false;
    return true;
  }

  // Memory for a batch: used before where there is some.
  std::unique_ptr<LoadedBatch> Spare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (spares_.empty()) return std::make_unique<LoadedBatch>();
    std::unique_ptr<LoadedBatch> batch = std::move(spares_.back());
    spares_.pop_back();
    return batch;
  }
  void Keep(std::unique_ptr<LoadedBatch> batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // One more than can be prepared: the one that is being taken.
    if (batch != nullptr && spares_.size() <= capacity_) spares_.push_back(std::move(batch));
  }

  // Reads the batch of `step` into `memory`.
  BatchOr Load(uint64_t step, std::unique_ptr<LoadedBatch> memory) const {
    const Dataset& dataset = *options_.dataset;
    const StepRange range = options_.plan.Range(step);
    const IndexPermutation permutation(options_.plan.examples(), options_.seed, range.epoch);
    const size_t example_size = static_cast<size_t>(ElementCount(dataset.example_shape()));
    const size_t label_size = static_cast<size_t>(ElementCount(dataset.label_shape()));
    try {
      memory->inputs.resize(range.count * example_size);
      memory->targets.resize(range.count * label_size);
      memory->indices.resize(range.count);
    } catch (const std::exception&) {  // bad_alloc or length_error
      return OutOfMemory(absl::StrCat("the batch of step ", step, ", ", range.count,
                                      " examples of ", example_size, " numbers"));
    }
    memory->step = step;
    memory->examples = range.count;
    for (uint64_t i = 0; i < range.count; ++i) {
      const uint64_t position = range.first + i;
      memory->indices[i] = options_.shuffle ? permutation(position) : position;
      SHOAL_RETURN_IF_ERROR(dataset.Read(
          memory->indices[i], std::span(memory->inputs).subspan(i * example_size, example_size),
          std::span(memory->targets).subspan(i * label_size, label_size)));
    }
    return memory;
  }

  const Options options_;
  const size_t capacity_;  // of prepared_

  Mutex mutex_;
  CondVar work_;     // for the thread: something to prepare, or the end
  CondVar settled_;  // for the others: reading_ or stopping_ changed, a taker left
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;     // the thread, and nobody has woken it
  int takers_ ABSL_GUARDED_BY(mutex_) = 0;          // threads inside Take
  ExpectedSteps expected_ ABSL_GUARDED_BY(mutex_);  // not yet taken, prepared or not
  std::map<uint64_t, BatchOr> prepared_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> reading_ ABSL_GUARDED_BY(mutex_);  // by the thread, unless forgotten
  uint64_t timeline_ ABSL_GUARDED_BY(mutex_) = 0;            // counts Forget
  std::vector<std::unique_ptr<LoadedBatch>> spares_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all the others
};

int BatchSource::Prefetch(uint64_t batch_bytes) {
  return static_cast<int>(std::clamp(kPrefetchBytes / std::max<uint64_t>(batch_bytes, 1),
                                     kLeastPrefetch, kMostPrefetch));
}

BatchSource::BatchSource(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
BatchSource::~BatchSource() = default;

void BatchSource::Expect(uint64_t first_step, uint64_t count) { impl_->Expect(first_step, count); }
void BatchSource::Forget() { impl_->Forget(); }
BatchOr BatchSource::Take(uint64_t step) { return impl_->Take(step); }
void BatchSource::Recycle(std::unique_ptr<LoadedBatch> batch) { impl_->Recycle(std::move(batch)); }
bool BatchSource::IsPrepared(uint64_t step) const { return impl_->IsPrepared(step); }
uint64_t BatchSource::prepared() const { return impl_->prepared(); }

}  // namespace shoal

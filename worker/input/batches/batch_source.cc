#include "worker/input/batches/batch_source.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/memory/memory_limit.h"
#include "worker/input/batches/expected_steps.h"
#include "worker/input/files/reading_memory.h"

namespace shoal {
namespace {

using BatchOr = absl::StatusOr<std::unique_ptr<LoadedBatch>>;

// Steps that are prepared or being read.
struct Begun {
  const std::map<uint64_t, BatchOr>& prepared;
  const std::set<uint64_t>& reading;
  bool contains(uint64_t step) const { return prepared.contains(step) || reading.contains(step); }
};

// Bytes to prefetch, but at least kMinPrefetch and at most kMaxPrefetch batches.
constexpr uint64_t kPrefetchBytes = 64 << 10;
constexpr uint64_t kMinPrefetch = 4;
constexpr uint64_t kMaxPrefetch = 16;

uint64_t BatchBytes(const BatchSource::Options& options) {
  constexpr int64_t kBytes = sizeof(float);
  int64_t bytes = ElementCount(options.dataset->label_shape()) * kBytes;
  const std::vector<Feature>& features = options.dataset->features();
  for (size_t f = 0; f < features.size(); ++f)
    bytes += ElementCount(features[f].shape) * (options.uint8_inputs.contains(f) ? 1 : kBytes);
  return options.plan.Range(0).count * static_cast<uint64_t>(bytes);
}

}  // namespace

// The threads prepare the expected steps in order. At most `prefetch` batches are prepared or being
// read. One lock guards all shared state. No thread holds it while reading.
class BatchSource::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)),
        capacity_(static_cast<size_t>(
            std::max(options_.prefetch.value_or(DefaultPrefetch(BatchBytes(options_))), 0))) {
    const int threads = options_.threads.value_or(ThreadsFor(*options_.dataset));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }

  ~Impl() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      work_.NotifyAll();
      settled_.NotifyAll();
      while (takers_ > 0) settled_.Wait(&mutex_);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  void Prefetch(uint64_t first_step, uint64_t count) {
    const uint64_t total = options_.plan.total_steps();
    const uint64_t begin = std::min(first_step, total);
    const uint64_t end = begin + std::min(count, total - begin);
    size_t wake;
    {
      MutexLock lock(&mutex_);
      expected_.Add(begin, end);
      wake = ToBeWoken();
    }
    Wake(wake);
  }

  void CancelPrefetch() {
    MutexLock lock(&mutex_);
    expected_.Clear();
    for (auto& [step, batch] : prepared_) {
      if (!batch.ok()) continue;
      if (batch->get() == peeked_) {
        forgotten_ = *std::move(batch);
      } else {
        Keep(*std::move(batch));
      }
    }
    prepared_.clear();
    // The batches that threads are reading now are no longer needed.
    reading_.clear();
    ++timeline_;
    settled_.NotifyAll();
  }

  BatchOr Take(uint64_t step) {
    if (step >= options_.plan.total_steps()) {
      return absl::OutOfRangeError(absl::StrCat("there is no step ", step, "; the plan has ",
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

  const LoadedBatch* PeekNext() {
    MutexLock lock(&mutex_);
    EndPeek();
    const std::optional<uint64_t> next = expected_.First();
    if (!next.has_value()) return nullptr;
    const auto found = prepared_.find(*next);
    if (found == prepared_.end() || !found->second.ok()) return nullptr;
    return peeked_ = found->second->get();
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
    size_t wake;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && reading_.contains(step)) settled_.Wait(&mutex_);
      if (stopping_) {
        return absl::CancelledError(absl::StrCat("step ", step, ": the batch source is closed"));
      }
      EndPeek();
      expected_.Remove(step);
      if (auto found = prepared_.extract(step)) {
        prepared = std::move(found.mapped());
      } else {
        memory = Spare();
      }
      wake = ToBeWoken();
    }
    Wake(wake);
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
          ++asleep_;
          work_.Wait(&mutex_);
        }
        if (stopping_) return;
        step = *next;
        timeline = timeline_;
        reading_.insert(step);
        memory = Spare();
      }
      BatchOr batch = Load(step, std::move(memory));
      MutexLock lock(&mutex_);
      if (timeline == timeline_) {
        reading_.erase(step);
        prepared_.emplace(step, std::move(batch));
        settled_.NotifyAll();
      } else if (batch.ok()) {
        Keep(*std::move(batch));
      }
    }
  }

  std::optional<uint64_t> NextToPrepare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (prepared_.size() + reading_.size() >= capacity_) return std::nullopt;
    return expected_.FirstUnknown(Begun{prepared_, reading_});
  }

  // Returns the number of sleeping threads to wake after releasing the lock. Waking one for each
  // batch would cost more than a small batch.
  size_t ToBeWoken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t begun = prepared_.size() + reading_.size();
    if (asleep_ == 0 || begun > capacity_ / 2 || !NextToPrepare().has_value()) return 0;
    const size_t woken = std::min(asleep_, capacity_ - begun);
    asleep_ -= woken;
    return woken;
  }
  void Wake(size_t threads) {
    for (size_t i = 0; i < threads; ++i) work_.NotifyOne();
  }

  // Returns memory for a batch; reuses that of an earlier batch if possible.
  std::unique_ptr<LoadedBatch> Spare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (spares_.empty()) return std::make_unique<LoadedBatch>();
    std::unique_ptr<LoadedBatch> batch = std::move(spares_.back());
    spares_.pop_back();
    return batch;
  }
  void EndPeek() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    peeked_ = nullptr;
    Keep(std::move(forgotten_));
  }
  void Keep(std::unique_ptr<LoadedBatch> batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Keeps one more than can be prepared, for the batch that is being taken.
    if (batch != nullptr && spares_.size() <= capacity_) spares_.push_back(std::move(batch));
  }

  // Reads the batch of `step` into `memory`.
  BatchOr Load(uint64_t step, std::unique_ptr<LoadedBatch> memory) const {
    const Dataset& dataset = *options_.dataset;
    const StepRange range = options_.plan.Range(step);
    const IndexPermutation permutation(options_.plan.examples(), options_.seed, range.epoch);
    SHOAL_RETURN_IF_ERROR(MakeRoom(range.count, step, memory.get()));
    memory->step = step;
    memory->id = ++readings_;
    memory->examples = range.count;
    const size_t label_size = static_cast<size_t>(ElementCount(dataset.label_shape()));
    std::vector<FeatureSpan> features(dataset.features().size());
    for (uint64_t i = 0; i < range.count; ++i) {
      const uint64_t position = range.first + i;
      memory->indices[i] = options_.shuffle ? permutation(position) : position;
      for (size_t f = 0; f < features.size(); ++f) {
        const auto of_example = [&](auto& values) {
          const size_t size = values.size() / range.count;
          return FeatureSpan(std::span(values).subspan(i * size, size));
        };
        const auto bytes = memory->uint8_inputs.find(f);
        features[f] = bytes == memory->uint8_inputs.end() ? of_example(ValuesOf(f, memory.get()))
                                                          : of_example(bytes->second);
      }
      SHOAL_RETURN_IF_ERROR(
          dataset.Read(memory->indices[i], features,
                       std::span(memory->targets).subspan(i * label_size, label_size)));
    }
    return memory;
  }

  // The vector for a feature's values. The weights come after the inputs.
  static std::vector<float>& ValuesOf(size_t feature, LoadedBatch* batch) {
    return feature < batch->inputs.size() ? batch->inputs[feature] : batch->weights;
  }

  absl::Status MakeRoom(uint64_t examples, uint64_t step, LoadedBatch* batch) const {
    const Dataset& dataset = *options_.dataset;
    size_t numbers = 0;
    try {
      const std::vector<Feature>& features = dataset.features();
      const bool weighted = !features.empty() && features.back().type == FeatureType::kWeight;
      batch->inputs.resize(features.size() - weighted);
      for (size_t f = 0; f < features.size(); ++f) {
        const auto size = static_cast<size_t>(ElementCount(features[f].shape));
        numbers += size;
        if (options_.uint8_inputs.contains(f)) {
          batch->uint8_inputs[f].resize(examples * size);
        } else {
          ValuesOf(f, batch).resize(examples * size);
        }
      }
      batch->targets.resize(examples * static_cast<size_t>(ElementCount(dataset.label_shape())));
      batch->indices.resize(examples);
      return absl::OkStatus();
    } catch (const std::exception&) {  // bad_alloc or length_error
      return OutOfMemory(absl::StrCat("the batch of step ", step, ", ", examples, " examples of ",
                                      numbers, " numbers"));
    }
  }

  const Options options_;
  const size_t capacity_;  // of prepared_ and reading_
  mutable std::atomic<uint64_t> readings_ = 0;

  Mutex mutex_;
  CondVar work_;     // for the threads: a step to prepare, or the end
  CondVar settled_;  // for callers: reading_ or stopping_ changed, or Take() returned
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t asleep_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for work_ and are not woken yet
  int takers_ ABSL_GUARDED_BY(mutex_) = 0;     // threads inside Take
  ExpectedSteps expected_ ABSL_GUARDED_BY(mutex_);  // not yet taken, prepared or not
  std::map<uint64_t, BatchOr> prepared_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> reading_
      ABSL_GUARDED_BY(mutex_);  // by the threads; cleared by CancelPrefetch()
  // The result of PeekNext(): in prepared_, or else forgotten_.
  const LoadedBatch* peeked_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<LoadedBatch> forgotten_ ABSL_GUARDED_BY(mutex_);
  uint64_t timeline_ ABSL_GUARDED_BY(mutex_) = 0;  // number of calls of CancelPrefetch()
  std::vector<std::unique_ptr<LoadedBatch>> spares_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;  // last: they use all the others
};

int BatchSource::DefaultPrefetch(uint64_t batch_bytes) {
  return static_cast<int>(
      std::clamp(kPrefetchBytes / std::max<uint64_t>(batch_bytes, 1), kMinPrefetch, kMaxPrefetch));
}

int BatchSource::ThreadsFor(const Dataset& dataset) {
  return dataset.IsCostlyToRead() ? ReadingThreads() : 1;
}

BatchSource::BatchSource(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
BatchSource::~BatchSource() = default;

void BatchSource::Prefetch(uint64_t first_step, uint64_t count) {
  impl_->Prefetch(first_step, count);
}
void BatchSource::CancelPrefetch() { impl_->CancelPrefetch(); }
BatchOr BatchSource::Take(uint64_t step) { return impl_->Take(step); }
void BatchSource::Recycle(std::unique_ptr<LoadedBatch> batch) { impl_->Recycle(std::move(batch)); }
const LoadedBatch* BatchSource::PeekNext() { return impl_->PeekNext(); }
bool BatchSource::IsPrepared(uint64_t step) const { return impl_->IsPrepared(step); }
uint64_t BatchSource::prepared() const { return impl_->prepared(); }

}  // namespace shoal

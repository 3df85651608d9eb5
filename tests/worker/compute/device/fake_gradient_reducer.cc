#include "tests/worker/compute/device/fake_gradient_reducer.h"

#include "tests/worker/compute/device/fake_device.h"

namespace shoal {

absl::Status FakeGradientReducer::Reduce(const SumRank& rank, Device& device, char* gradients,
                                         int64_t size_bytes) {
  if (meetings() == 0) return absl::InternalError("the ranks have not met before their sums");
  int number = 0;
  {
    MutexLock lock(&mutex_);
    if (aborted_) return absl::CancelledError("the sums were aborted");
    number = given_[rank.rank]++;
    ++reduces_;
  }
  const std::span<float> values(reinterpret_cast<float*>(gradients), size_bytes / sizeof(float));
  static_cast<FakeDevice&>(device).GiveOut(
      "sum", [=, this, rank = rank.rank] { return MayRun(rank, number); },
      [=, this, rank = rank.rank, share = rank.share] { return Run(rank, share, number, values); });
  return absl::OkStatus();
}

absl::Status FakeGradientReducer::Check(int rank) {
  MutexLock lock(&mutex_);
  if (aborted_) return absl::CancelledError("the sums were aborted");
  return rank == failing_ ? absl::UnavailableError("the link of this test fails")
                          : absl::OkStatus();
}

void FakeGradientReducer::Abort() {
  rendezvous_.Abort();
  MutexLock lock(&mutex_);
  aborted_ = true;
}

void FakeGradientReducer::HoldUp(int rank) {
  MutexLock lock(&mutex_);
  held_up_ = rank;
}

void FakeGradientReducer::FailLink(int rank) {
  MutexLock lock(&mutex_);
  failing_ = rank;
}

int FakeGradientReducer::reduces() {
  MutexLock lock(&mutex_);
  return reduces_;
}

bool FakeGradientReducer::MayRun(int rank, int number) {
  MutexLock lock(&mutex_);
  if (aborted_) return true;
  if (rank == held_up_) return false;
  return rank > 0 || parts_[number].size() + 1 == given_.size();
}

absl::Status FakeGradientReducer::Run(int rank, float share, int number, std::span<float> values) {
  MutexLock lock(&mutex_);
  if (rank > 0) {
    std::vector<float>& part = parts_[number][rank];
    for (const float value : values) part.push_back(share * value);
    return absl::OkStatus();
  }
  for (float& value : values) value *= share;
  for (const auto& [other, part] : parts_[number]) {
    if (part.size() != values.size()) return absl::InternalError("ranks add up other sizes");
    for (size_t i = 0; i < part.size(); ++i) values[i] += part[i];
  }
  parts_.erase(number);
  return absl::OkStatus();
}

}  // namespace shoal

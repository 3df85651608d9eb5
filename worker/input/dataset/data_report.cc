#include "worker/input/dataset/data_report.h"

namespace shoal {
namespace {

constexpr size_t kMaxNamed = 100;

}  // namespace

void DataReport::AddDamage(const absl::Status& status) {
  ++damaged_count;
  if (damaged.size() < kMaxNamed) damaged.push_back(std::string(status.message()));
}

}  // namespace shoal

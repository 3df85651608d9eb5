#include "worker/input/dataset/data_report.h"

namespace shoal {
namespace {

constexpr size_t kMostNamed = 100;

}  // namespace

void DataReport::AddDamage(const absl::Status& status) {
  ++damaged_count;
  if (damaged.size() < kMostNamed) damaged.push_back(std::string(status.message()));
}

}  // namespace shoal

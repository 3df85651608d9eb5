#include "common/daemon/process/incarnation.h"

#include <random>

namespace shoal {

uint64_t DrawIncarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace shoal

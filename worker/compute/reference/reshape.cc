#include <algorithm>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Reshape(const Arguments& a) {
  std::copy_n(a.inputs[0].data, a.output().size(), a.output().data);
}

}  // namespace shoal::reference

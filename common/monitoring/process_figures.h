#pragma once

#include "common/metrics/metric_samples.h"

namespace shoal {

// CPU, memory, descriptors, threads and lost log lines of this process, and its version. Any
// thread. What the system does not tell is left out.
void CollectProcessFigures(MetricSamples* out);

}  // namespace shoal

#pragma once

#include <CLI/CLI.hpp>

namespace shoal {

// Refuses what is no name of something to compute on (compute_device.h), with the nearest one;
// `automatic`: "auto" is one.
CLI::Validator DeviceCheck(bool automatic);

}  // namespace shoal

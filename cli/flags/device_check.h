#pragma once

#include <CLI/CLI.hpp>

#include "worker/compute/registry/compute_device.h"

namespace shoal {

// Rejects invalid device names (CheckDeviceName).
CLI::Validator DeviceCheck(const DeviceNameRules& rules);

}  // namespace shoal

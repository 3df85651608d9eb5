#pragma once

#include <CLI/CLI.hpp>

#include "worker/compute/backend/compute_device.h"

namespace shoal {

// Refuses what is no name of something to compute on (CheckDeviceName).
CLI::Validator DeviceCheck(const DeviceNameRules& rules);

}  // namespace shoal

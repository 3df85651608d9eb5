#include "cli/device_check.h"

#include <string>

#include "worker/compute/compute_device.h"

namespace shoal {

CLI::Validator DeviceCheck(bool automatic) {
  return {[automatic](const std::string& name) {
            return std::string(CheckDeviceName(name, automatic).message());
          },
          ""};
}

}  // namespace shoal

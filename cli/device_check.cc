#include "cli/device_check.h"

#include <string>

#include "worker/compute/compute_device.h"

namespace shoal {

CLI::Validator DeviceCheck(bool automatic) {
  return {[automatic](const std::string& name) -> std::string {
            if (name == "auto" && !automatic)
              return "\"auto\" is for workers; here say cpu, reference or cuda:N";
            return std::string(CheckDeviceName(name).message());
          },
          ""};
}

}  // namespace shoal

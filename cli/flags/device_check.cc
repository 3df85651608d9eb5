#include "cli/flags/device_check.h"

#include <string>

namespace shoal {

CLI::Validator DeviceCheck(const DeviceNameRules& rules) {
  return {[rules](const std::string& name) {
            return std::string(CheckDeviceName(name, rules).message());
          },
          ""};
}

}  // namespace shoal

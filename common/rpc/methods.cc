#include "common/rpc/methods.h"

#include <cstdint>

namespace shoal {

MethodTraits TraitsOf(const std::string& method) {
  // A ps trusts a coordinator whose Claim it has accepted. Its messages include the job.
  if (method == kControlMethod) return {.max_trusted_request_bytes = SIZE_MAX};
  if (method == kExchangeMethod)
    return {.max_request_bytes = kMaxExchangeBytes, .shares_payloads = true};
  if (method == kWorkMethod || method == kEvaluateMethod)
    return {.max_request_bytes = size_t{4} << 20};
  return {};
}

}  // namespace shoal

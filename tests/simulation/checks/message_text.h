#pragma once

#include <string>

#include "common/rpc/message.h"

namespace shoal {

// Returns a message of this method as one line for the trace, cut to some 300 characters.
std::string TextOf(const std::string& method, bool by_client, const Message& message);

}  // namespace shoal

#pragma once

#include <string>

namespace shoal {

// Quotes `text` as one word of a POSIX shell, for commands that users copy from a message.
std::string ShellWord(const std::string& text);

}  // namespace shoal

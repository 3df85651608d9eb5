#pragma once

#include <string>

namespace shoal {

// `text` as one word of a POSIX shell, for commands that people copy from a message.
std::string ShellWord(const std::string& text);

}  // namespace shoal

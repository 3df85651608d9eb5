#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace shoal {

// What the command lines of all programs have in common.

// Has every option of `app` and of its commands refuse an empty value: it is that of a script's
// variable which is not set, and nobody means it.
void RefuseEmptyValues(CLI::App* app);

// What is wrong with the arguments that `app` has parsed, for people. A flag that is not known is
// named with the one that may have been meant, what is missing with an example of the command.
std::string DescribeMistake(const CLI::App& app, const CLI::Error& error);

// Prints on standard output. An error where not all of it was taken, as by a full disk: to be
// reported on standard error, with the exit code that fits it.
absl::Status PrintOut(std::string_view text);

}  // namespace shoal

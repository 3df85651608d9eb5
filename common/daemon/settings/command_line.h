#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace shoal {

// Functions that the command lines of all programs share.

// Makes every option of `app` and of its commands reject an empty value. Such a value comes from an
// unset variable in a script.
void RejectEmptyValues(CLI::App* app);

// Describes for the user what is wrong with the arguments that `app` parsed. Names the nearest flag
// for an unknown one. Adds an example of the command for a missing one.
std::string DescribeMistake(const CLI::App& app, const CLI::Error& error);

// Prints on standard output. Returns an error if it does not accept all of the text, for example
// because a disk is full. The caller reports the error on standard error, with its exit code.
absl::Status PrintOut(std::string_view text);

}  // namespace shoal

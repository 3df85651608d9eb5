#include "common/daemon/settings/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/text/nearest_name.h"

namespace shoal {
namespace {

const auto kAll = [](const CLI::App*) { return true; };

// The long names of a command's flags, including those in its unnamed groups.
std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const CLI::App* group : command.get_subcommands(kAll)) {
    if (!group->get_name().empty()) continue;
    for (std::string& flag : FlagsOf(*group)) flags.push_back(std::move(flag));
  }
  return flags;
}

// The innermost typed command, and its text.
struct TypedCommand {
  const CLI::App* command;
  std::string typed;
};
TypedCommand TypedCommandOf(const CLI::App& app) {
  TypedCommand found = {&app, app.get_name()};
  while (!found.command->get_subcommands().empty()) {
    found.command = found.command->get_subcommands().front();
    absl::StrAppend(&found.typed, " ", found.command->get_name());
  }
  return found;
}

// The first example in the command's footer; empty if it has none.
std::string ExampleOf(const TypedCommand& found) {
  for (const absl::string_view line : absl::StrSplit(found.command->get_footer(), '\n')) {
    if (absl::StartsWith(line, absl::StrCat("  ", found.typed, " ")))
      return std::string(line.substr(2));
  }
  return "";
}

// Describes an option that CLI11 reports as required, with an example of the command. Returns ""
// for CLI11's other messages about counts of options.
std::string DescribeMissing(const CLI::App& app, absl::string_view complaint) {
  if (!absl::ConsumeSuffix(&complaint, " is required")) return "";
  const TypedCommand found = TypedCommandOf(app);
  std::string missing(complaint);
  if (absl::ConsumePrefix(&complaint, "Exactly 1 option from [") &&
      absl::ConsumeSuffix(&complaint, "]")) {
    missing = absl::StrCat("one of ", absl::StrReplaceAll(complaint, {{",", ", "}}));
  } else if (const auto* option = found.command->get_option_no_throw(missing); option != nullptr) {
    absl::StrAppend(&missing, " (", option->get_description(), ")");
  } else {
    return "";
  }
  const std::string example = ExampleOf(found);
  return absl::StrCat("`", found.typed, "` needs ", missing,
                      example.empty() ? "" : absl::StrCat("; for example: ", example));
}

// Describes the arguments that CLI11 did not use. CLI11 lists them from the end.
std::string DescribeLeftOver(const CLI::App& app) {
  const auto& [command, typed] = TypedCommandOf(app);
  const std::vector<std::string> left = app.remaining(/*recurse=*/true);
  const auto flag = std::find_if(left.begin(), left.end(),
                                 [](const std::string& each) { return each.starts_with("-"); });
  if (flag == left.end()) return absl::StrCat("`", typed, "` does not take `", left.front(), "`");
  const std::string name = flag->substr(0, flag->find('='));
  const std::string nearest = NearestName(name, FlagsOf(*command));
  return absl::StrCat("`", typed, "` has no flag `", name, "`",
                      nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?"));
}

}  // namespace

void RejectEmptyValues(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check([](const std::string& value) {
      return value.empty() ? "is empty; give it a value, or leave it out" : std::string();
    });
  }
  for (CLI::App* command : app->get_subcommands(kAll)) RejectEmptyValues(command);
}

std::string DescribeMistake(const CLI::App& app, const CLI::Error& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr &&
      !app.remaining(/*recurse=*/true).empty())
    return DescribeLeftOver(app);
  const std::string missing = dynamic_cast<const CLI::RequiredError*>(&error) == nullptr
                                  ? ""
                                  : DescribeMissing(app, error.what());
  return missing.empty() ? error.what() : missing;
}

absl::Status PrintOut(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write to standard output");
}

}  // namespace shoal

#include "cli/flags/job_flags.h"

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/match.h"

namespace shoal {
namespace {

// Parses "optimizer.config.learning_rate=0.01", also with the leading "$." of the paths in
// messages.
JobOverride ParseSet(const std::string& text) {
  const size_t equals = text.find('=');
  std::string field = text.substr(0, equals);
  if (field.starts_with("$.")) field.erase(0, 2);
  const bool keys = !field.empty() && field.front() != '.' && field.back() != '.' &&
                    !absl::StrContains(field, "..");
  if (equals == text.npos || !keys) {
    throw CLI::ValidationError("--set", "is " + text +
                                            "; must be FIELD=VALUE, for example "
                                            "optimizer.config.learning_rate=0.01");
  }
  return {"--set", field, text.substr(equals + 1)};
}

void AddField(CLI::App* command, std::vector<JobOverride>* overrides, const std::string& field,
              const char* help) {
  const std::string flag = "--" + field;
  command
      ->add_option_function<std::string>(
          flag,
          [overrides, flag, field](const std::string& value) {
            overrides->push_back({flag, field, value});
          },
          help)
      ->type_name("N");
}

}  // namespace

void AddJobFlags(CLI::App* command, std::vector<JobOverride>* overrides) {
  AddField(command, overrides, "epochs", "How long to train, instead of the job's epochs or steps");
  AddField(command, overrides, "seed", "Seed, instead of the job's");
  AddTrainedJobFlags(command, overrides);
}

void AddTrainedJobFlags(CLI::App* command, std::vector<JobOverride>* overrides) {
  AddField(command, overrides, "batch_size", "Examples of a step, instead of the job's");
  command
      ->add_option_function<std::vector<std::string>>(
          "--set",
          [overrides](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) overrides->push_back(ParseSet(text));
          },
          "Any field of the job; may be repeated")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
}

}  // namespace shoal

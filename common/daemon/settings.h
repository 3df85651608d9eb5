#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// The configuration of one process. Every setting is a flag; where the flag is not given, the
// environment variable SHOAL_NAME; where that is unset or empty, the file that --config (or
// SHOAL_CONFIG) names, with lines `name = value`; else its default. Made in main(), filled with
// settings, then parsed once. Not thread-safe.
class Settings {
 public:
  // `program`: "shoal-ps"; `description`: what it does, for --help.
  Settings(const std::string& program, const std::string& description);
  ~Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // Each adds the flag --NAME. `value` holds the default, gets the value from Parse() on, and must
  // outlive this.
  void AddText(const std::string& name, std::string* value, const std::string& help);
  void AddChoice(const std::string& name, std::string* value,
                 const std::vector<std::string>& choices, const std::string& help);
  // Text of one of several forms, which --help names ("cuda:N"). `check` says of a value what is
  // wrong with it.
  void AddForms(const std::string& name, std::string* value, const std::vector<std::string>& forms,
                std::function<absl::Status(const std::string&)> check, const std::string& help);
  void AddInteger(const std::string& name, int64_t* value, int64_t min, int64_t max,
                  const std::string& help);
  void AddNumber(const std::string& name, double* value, double min, double max,
                 const std::string& help);
  void AddSwitch(const std::string& name, bool* value, const std::string& help);
  // The same as AddInteger; --help does not show it.
  void AddHidden(const std::string& name, int64_t* value, int64_t min, int64_t max);

  // The setting that is likely meant by a value without a flag, which is refused with that word.
  void SuggestForBareValue(const std::string& name);

  // A flag that people give to this program and that it has not: `advice` says where they find it.
  void SayWhere(const std::string& name, const std::string& advice);

  // Text that --help ends with: examples.
  void SetFooter(const std::string& footer);

  // Reads flags, environment and file. Empty: go on. Else the process must end with this exit code:
  // 0 after --help or --version, kExitUsage or that of what could not be printed after an error,
  // which was printed on stderr.
  std::optional<int> Parse(int argc, const char* const* argv);

  enum class Source { kFlag, kEnvironment, kFile, kDefault };
  struct Resolved {
    std::string name;
    std::string value;
    Source source = Source::kDefault;
  };
  // After Parse(): every setting as it is, in the order in which they were added.
  std::vector<Resolved> resolved() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// "flag", "environment", "file", "default".
const char* SettingSourceName(Settings::Source source);

}  // namespace shoal

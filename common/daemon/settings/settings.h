#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// The configuration of one process. The value of a setting comes from the first of these: its flag;
// the environment variable SHOAL_NAME, unless empty; the file of --config (or SHOAL_CONFIG), with
// lines `name = value`; its default. Create it in main(), add the settings, then parse once. Not
// thread-safe.
class Settings {
 public:
  // `program` is for example "shoal-ps". `description` is for --help.
  Settings(const std::string& program, const std::string& description);
  ~Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // Each adds the flag --NAME. `value` holds the default and must outlive this. Parse() stores the
  // setting's value in it.
  void AddText(const std::string& name, std::string* value, const std::string& help);
  // A list of texts, which ':' divides. A flag may also be given several times, and in the file it
  // may be a TOML array. The values of one source replace those of the sources below it.
  void AddTexts(const std::string& name, std::vector<std::string>* value, const std::string& help);
  void AddChoice(const std::string& name, std::string* value,
                 const std::vector<std::string>& choices, const std::string& help);
  // Text in one of several forms, which --help lists ("cuda:N"). `check` returns the error for a
  // value.
  void AddForms(const std::string& name, std::string* value, const std::vector<std::string>& forms,
                std::function<absl::Status(const std::string&)> check, const std::string& help);
  void AddInteger(const std::string& name, int64_t* value, int64_t min, int64_t max,
                  const std::string& help);
  void AddNumber(const std::string& name, double* value, double min, double max,
                 const std::string& help);
  void AddSwitch(const std::string& name, bool* value, const std::string& help);
  // As AddInteger, but --help does not show it.
  void AddHidden(const std::string& name, int64_t* value, int64_t min, int64_t max);

  // Suggests setting `name` in the error about a value without a flag.
  void SuggestForBareValue(const std::string& name);

  // Adds `advice` to the error about a flag that this program lacks but that users give to it.
  void AddAdvice(const std::string& name, const std::string& advice);

  // Sets the text at the end of --help: examples.
  void SetFooter(const std::string& footer);

  // Reads flags, environment and file. Returns nullopt if the process can continue. Otherwise it
  // must end with the returned exit code. That is 0 after --help or --version, or the code of the
  // failure to print them. It is kExitUsage after an error, which is printed on stderr.
  std::optional<int> Parse(int argc, const char* const* argv);

  enum class Source { kFlag, kEnvironment, kFile, kDefault };
  struct Resolved {
    std::string name;
    std::string value;
    Source source = Source::kDefault;
  };
  // Requires Parse(). Returns every setting's value, in the order in which they were added.
  std::vector<Resolved> resolved() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// Returns "flag", "environment", "file" or "default".
const char* SettingSourceName(Settings::Source source);

}  // namespace shoal

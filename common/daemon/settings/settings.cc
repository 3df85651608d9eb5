#include "common/daemon/settings/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/text/nearest_name.h"
#include "common/base/text/shell_word.h"
#include "common/base/version.h"
#include "common/daemon/process/exit_code.h"
#include "common/daemon/settings/command_line.h"

namespace shoal {
namespace {

constexpr char kListDelimiter = ':';

std::string VariableOf(const std::string& name) {
  return absl::StrCat("SHOAL_", absl::AsciiStrToUpper(name));
}

// Value of the environment variable of setting `name`; empty if it is not set.
std::string FromEnvironment(const std::string& name) {
  const char* value = std::getenv(VariableOf(name).c_str());
  return value == nullptr ? "" : value;
}

}  // namespace

struct Settings::Implementation {
  struct Entry {
    std::string name;
    CLI::Option* option = nullptr;
    std::function<std::string()> value;  // as text
    bool hidden = false;
    bool list = false;
  };

  // Every option is added here. The last of several values counts. Flags thus override the values
  // that Parse() puts before them.
  void Add(const std::string& name, CLI::Option* option, std::function<std::string()> value) {
    option->take_last()->envname(VariableOf(name));
    entries.push_back({name, option, std::move(value)});
  }

  bool IsFlagGiven(const std::string& name) const {
    return flags_given.count(absl::StrCat("--", name)) > 0;
  }

  // The file of --config; empty if none.
  std::string ConfigFile() const {
    return config->results().empty() ? std::string() : config->results().back();
  }

  // Describes CLI11's complaint about the settings, and the source of the rejected value.
  std::string Explain(const std::string& complaint) const {
    absl::string_view unknown = complaint;
    if (absl::ConsumePrefix(&unknown, "INI was not able to parse ")) {  // for any format
      std::vector<std::string> names;
      for (const Entry& entry : entries) {
        if (!entry.hidden) names.push_back(entry.name);
      }
      const std::string nearest = NearestName(std::string(unknown), names);
      return absl::StrCat(ConfigFile(), ": there is no setting `", unknown, "`",
                          nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?"));
    }
    std::string text = complaint;
    for (const Entry& entry : entries) {
      if (IsFlagGiven(entry.name) || complaint.find("--" + entry.name) == std::string::npos)
        continue;
      if (!FromEnvironment(entry.name).empty()) {
        absl::StrAppend(&text, "\nThe value comes from the environment variable ",
                        VariableOf(entry.name), ".");
      } else if (entry.option != config && !ConfigFile().empty()) {
        absl::StrAppend(&text, "\nThe value comes from the file ", ConfigFile(), ".");
      }
    }
    return text;
  }

  // Advice for a flag that this program lacks.
  std::string AdviseOnFlag() const {
    for (const std::string& left : app.remaining()) {
      const auto found = advice.find(left.substr(0, left.find('=')));
      if (found != advice.end()) return absl::StrCat("; ", found->second);
    }
    return "";
  }

  // Suggests a flag for a value without one.
  std::string SuggestFlag() const {
    const std::vector<std::string> left = app.remaining();
    if (for_bare_value.empty() || left.size() != 1 || left[0].starts_with("-") ||
        app.get_option("--" + for_bare_value)->count() > 0) {
      return "";
    }
    return absl::StrCat("; did you mean `--", for_bare_value, "=", ShellWord(left[0]), "`?");
  }

  CLI::App app;
  CLI::Option* config = nullptr;
  std::vector<Entry> entries;
  std::string for_bare_value;                 // setting to suggest; empty: none
  std::map<std::string, std::string> advice;  // by "--name" of an unknown flag
  std::set<std::string> flags_given;          // "--name"
};

Settings::Settings(const std::string& program, const std::string& description)
    : implementation_(std::make_unique<Implementation>()) {
  CLI::App& app = implementation_->app;
  app.name(program);
  app.description(description);
  app.set_version_flag("--version", absl::StrCat(program, " ", kVersion));
  CLI::Option* config = implementation_->config = app.set_config(
      "--config", "", "File with lines `name = value`, for any of these settings (TOML)");
  config->check(CLI::ExistingFile)->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  implementation_->Add("config", config, [config] {
    return config->empty() ? std::string() : config->as<std::string>();
  });
  app.get_formatter()->column_width(34);
}

Settings::~Settings() = default;

void Settings::AddText(const std::string& name, std::string* value, const std::string& help) {
  CLI::Option* option = implementation_->app.add_option("--" + name, *value, help);
  if (!value->empty()) option->capture_default_str();
  implementation_->Add(name, option, [value] { return *value; });
}

void Settings::AddTexts(const std::string& name, std::vector<std::string>* value,
                        const std::string& help) {
  CLI::Option* option = implementation_->app.add_option("--" + name, *value, help);
  option->delimiter(kListDelimiter);
  implementation_->Add(name, option,
                       [value] { return absl::StrJoin(*value, std::string(1, kListDelimiter)); });
  option->take_all()->expected(1)->allow_extra_args(false);
  implementation_->entries.back().list = true;
}

void Settings::AddChoice(const std::string& name, std::string* value,
                         const std::vector<std::string>& choices, const std::string& help) {
  AddText(name, value, help);
  implementation_->entries.back().option->check(CLI::IsMember(choices));
}

void Settings::AddForms(const std::string& name, std::string* value,
                        const std::vector<std::string>& forms,
                        std::function<absl::Status(const std::string&)> check,
                        const std::string& help) {
  AddText(name, value, help);
  const std::string names = absl::StrCat("TEXT:{", absl::StrJoin(forms, ","), "}");
  implementation_->entries.back().option->type_name(names)->check(
      [check = std::move(check)](const std::string& text) {
        return std::string(check(text).message());
      });
}

void Settings::AddInteger(const std::string& name, int64_t* value, int64_t min, int64_t max,
                          const std::string& help) {
  CLI::Option* option = implementation_->app.add_option("--" + name, *value, help);
  option->check(CLI::Range(min, max))->capture_default_str();
  implementation_->Add(name, option, [value] { return absl::StrCat(*value); });
}

void Settings::AddNumber(const std::string& name, double* value, double min, double max,
                         const std::string& help) {
  CLI::Option* option = implementation_->app.add_option("--" + name, *value, help);
  option->check(CLI::Range(min, max))->capture_default_str();
  implementation_->Add(name, option, [value] { return absl::StrCat(*value); });
}

void Settings::AddSwitch(const std::string& name, bool* value, const std::string& help) {
  CLI::Option* option = implementation_->app.add_flag("--" + name, *value, help);
  implementation_->Add(name, option, [value] { return *value ? "true" : "false"; });
}

void Settings::AddHidden(const std::string& name, int64_t* value, int64_t min, int64_t max) {
  AddInteger(name, value, min, max, "");
  implementation_->entries.back().option->group("");  // CLI11's way to hide
  implementation_->entries.back().hidden = true;
}

void Settings::SuggestForBareValue(const std::string& name) {
  implementation_->for_bare_value = name;
}

void Settings::AddAdvice(const std::string& name, const std::string& advice) {
  implementation_->advice["--" + name] = advice;
}

void Settings::SetFooter(const std::string& footer) { implementation_->app.footer(footer); }

std::optional<int> Settings::Parse(int argc, const char* const* argv) {
  Implementation& self = *implementation_;
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    self.flags_given.insert(argument.substr(0, argument.find('=')));
  }
  for (const Implementation::Entry& entry : self.entries) {
    // CLI11 itself would let the file override the environment.
    const std::string value = FromEnvironment(entry.name);
    if (entry.list && self.IsFlagGiven(entry.name)) continue;
    if (!value.empty()) arguments.push_back(absl::StrCat("--", entry.name, "=", value));
  }
  for (int i = 1; i < argc; ++i) arguments.push_back(argv[i]);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them in reverse order
  RejectEmptyValues(&self.app);
  try {
    self.app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    self.app.exit(success, text, text);  // the help or the version
    const absl::Status printed = PrintOut(text.str());
    if (!printed.ok()) std::cerr << self.app.get_name() << ": " << printed.message() << "\n";
    return ExitCodeOf(printed);
  } catch (const CLI::Error& error) {
    std::cerr << self.app.get_name() << ": " << self.Explain(DescribeMistake(self.app, error))
              << self.SuggestFlag() << self.AdviseOnFlag() << "\n";
    std::cerr << "Run with --help for the settings.\n";
    return kExitUsage;
  }
}

std::vector<Settings::Resolved> Settings::resolved() const {
  std::vector<Resolved> all;
  for (const Implementation::Entry& entry : implementation_->entries) {
    if (entry.hidden) continue;
    Source source = Source::kDefault;
    if (implementation_->IsFlagGiven(entry.name)) {
      source = Source::kFlag;
    } else if (!FromEnvironment(entry.name).empty()) {
      source = Source::kEnvironment;
    } else if (entry.option->count() > 0) {
      source = Source::kFile;
    }
    all.push_back({entry.name, entry.value(), source});
  }
  return all;
}

const char* SettingSourceName(Settings::Source source) {
  switch (source) {
    case Settings::Source::kFlag:
      return "flag";
    case Settings::Source::kEnvironment:
      return "environment";
    case Settings::Source::kFile:
      return "file";
    case Settings::Source::kDefault:
      break;
  }
  return "default";
}

}  // namespace shoal

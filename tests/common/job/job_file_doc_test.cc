// docs/job-file.md against the reader: every documented field is known, every known field
// documented, with the default, the limits and the example that the table gives.

#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "common/job/job.h"
#include "tests/common/job/job_files.h"
#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

using nlohmann::json;

struct Field {
  std::string type;
  std::string default_text;  // "*required*", "absent", or JSON
  std::string limits;
  std::string example;  // JSON, or empty
};

std::string Unquoted(std::string cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '`')) cell.erase(0, 1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '`')) cell.pop_back();
  return cell;
}

struct DataField {
  std::string name;
  std::string formats;       // "all", or names between commas
  std::string default_text;  // as above
  std::string example;
  bool Has(const std::string& format) const {
    return formats == "all" || (", " + formats + ",").find(" " + format + ",") != std::string::npos;
  }
};

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream row(line.substr(1));
  for (std::string cell; std::getline(row, cell, '|');) cells.push_back(Unquoted(cell));
  EXPECT_EQ(cells.size(), 5u) << line;
  return cells;
}

// Rows of the table of fields, by JSON path.
std::map<std::string, Field> DocumentedFields() {
  std::map<std::string, Field> fields;
  std::istringstream document(DocumentText("job-file.md"));
  for (std::string line; std::getline(document, line);) {
    if (line.rfind("| `$.", 0) != 0) continue;
    const std::vector<std::string> cells = Cells(line);
    if (cells.size() == 5) fields[cells[0]] = {cells[1], cells[2], cells[3], cells[4]};
  }
  return fields;
}

// Rows of the table of fields of a data source, in its order.
std::vector<DataField> DocumentedDataFields() {
  const std::string document = DocumentText("job-file.md");
  std::istringstream table(document.substr(document.find("| field | formats |")));
  std::vector<DataField> fields;
  for (std::string line; std::getline(table, line) && !line.empty();) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::vector<std::string> cells = Cells(line);
    if (cells.size() == 5) fields.push_back({cells[0], cells[1], cells[3], cells[4]});
  }
  return fields;
}

// "$.data.training" -> "/data/training".
json::json_pointer Pointer(const std::string& path) {
  std::string pointer = path.substr(1);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return json::json_pointer(pointer);
}

class JobFileDocTest : public JobFilesTest {
 protected:
  absl::Status LoadWith(json root, const std::string& path, const json& value) {
    // Of these two exactly one may stand in a job.
    if (path == "$.steps") root.erase("epochs");
    if (path == "$.callbacks") root["data"]["test"] = root["data"]["training"];
    if (path == "$.strategy.gradients_per_update")
      root["strategy"] = {{"name", "sync"}, {"window_steps", 1 << 20}};
    if (path == "$.strategy.workers") root["strategy"] = {{"warmup_steps", 100}};
    if (path == "$.strategy.momentum_by_workers" || path == "$.strategy.look_ahead")
      root["optimizer"] = "adam";
    if (path == "$.strategy.batches_per_step" || path == "$.strategy.fragments" ||
        path == "$.strategy.outer_optimizer")
      root["strategy"] = {{"name", "local"}};
    root[Pointer(path)] = value;
    return LoadJob(WriteJob(root), false).status();
  }
};

TEST_F(JobFileDocTest, TheExampleLoads) {
  const std::string document = DocumentText("job-file.md");
  const size_t begin = document.find("```json\n") + 8;
  const json job = json::parse(document.substr(begin, document.find("```", begin) - begin));
  const auto loaded = LoadJob(WriteJob(job), false);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
}

TEST_F(JobFileDocTest, NeitherSideKnowsAFieldThatTheOtherLacks) {
  // The reader names its known keys when it meets one that it doesn't know: provoke that in every
  // object.
  json root = MinimalJob();
  root["data"]["test"] = root["data"]["training"];
  root["strategy"] = {{"name", "async"}};
  root["checkpoint"] = json::object();
  root["compression"] = json::object();
  for (const char* object : {"", "/data", "/strategy", "/checkpoint", "/compression"}) {
    root[json::json_pointer(object)]["?"] = 0;
  }
  std::istringstream message(std::string(LoadJob(WriteJob(root), false).status().message()));
  const std::regex unknown_key(": (\\$[^ ]*)\\[\"\\?\"\\]: is not a known key; known: (.*)$");
  std::set<std::string> known;
  for (std::string line; std::getline(message, line);) {
    std::smatch match;
    ASSERT_TRUE(std::regex_search(line, match, unknown_key)) << line;
    std::istringstream keys(match[2]);
    for (std::string key; keys >> key;) {
      if (key.back() == ',') key.pop_back();
      known.insert(match[1].str() + "." + key);
    }
  }
  std::set<std::string> documented;
  for (const auto& [path, field] : DocumentedFields()) documented.insert(path);
  EXPECT_EQ(documented, known);
}

// The same for a data source of each format, which the reader names when it meets an unknown one.
TEST_F(JobFileDocTest, FieldsOfEachDataFormatAreAsDocumented) {
  json root = MinimalJob();
  root["data"]["training"]["format"] = "?";
  const std::string unknown(LoadJob(WriteJob(root), false).status().message());
  std::istringstream formats(unknown.substr(unknown.find("known: ") + 7));
  for (std::string format; formats >> format;) {
    if (format.back() == ',') format.pop_back();
    SCOPED_TRACE(format);
    json source = {{"format", format}, {"?", 0}};
    std::string documented;
    for (const DataField& field : DocumentedDataFields()) {
      if (!field.Has(format)) continue;
      documented += (documented.empty() ? "" : ", ") + field.name;
      if (!field.example.empty() && field.name != "format") {
        source[field.name] = json::parse(field.example);
      }
    }
    root["data"]["training"] = source;
    const std::string message(LoadJob(WriteJob(root), false).status().message());
    EXPECT_THAT(message, ::testing::EndsWith("nown: " + documented));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    // Without any of them, exactly those that are required are missing.
    root["data"]["training"] = {{"format", format}};
    const std::string missing = LoadJob(WriteJob(root), false).status().ToString();
    std::map<std::string, bool> required;
    for (const DataField& field : DocumentedDataFields()) {
      required[field.name] |= field.Has(format) && field.default_text == "*required*";
    }
    for (const auto& [name, is_required] : required) {
      const std::string line = "$.data.training." + name + ": is missing";
      EXPECT_EQ(missing.find(line) != std::string::npos, is_required) << line << " in\n" << missing;
    }
  }
}

TEST_F(JobFileDocTest, DefaultsAreAsDocumented) {
  const auto job = LoadJob(WriteJob(MinimalJob()), false);
  ASSERT_TRUE(job.ok()) << job.status();
  const json resolved = json::parse(job->ResolvedText());
  for (const auto& [path, field] : DocumentedFields()) {
    SCOPED_TRACE(path);
    if (field.default_text == "*required*") {
      json root = MinimalJob();
      root["data"]["test"] = root["data"]["training"];
      root[Pointer(path).parent_pointer()].erase(Pointer(path).back());
      EXPECT_THAT(LoadJob(WriteJob(root), false).status().ToString(),
                  ::testing::HasSubstr(path + ": is missing"));
    } else if (field.default_text != "absent" && path != "$.strategy") {
      EXPECT_EQ(resolved[Pointer(path)], json::parse(field.default_text));
    }
  }
}

TEST_F(JobFileDocTest, LimitsAreAsDocumented) {
  const std::regex range("(\\S+) to (\\d+)");
  int checked = 0;
  for (const auto& [path, field] : DocumentedFields()) {
    if (field.type != "integer" && field.type != "number") continue;
    SCOPED_TRACE(path);
    std::smatch match;
    ASSERT_TRUE(std::regex_match(field.limits, match, range)) << field.limits;
    const json low = json::parse(match[1].str());
    const json high = json::parse(match[2].str());
    EXPECT_TRUE(LoadWith(MinimalJob(), path, low).ok());
    EXPECT_TRUE(LoadWith(MinimalJob(), path, high).ok()) << LoadWith(MinimalJob(), path, high);
    EXPECT_FALSE(LoadWith(MinimalJob(), path, low.get<double>() - 0.01).ok());
    EXPECT_FALSE(LoadWith(MinimalJob(), path, high.get<uint64_t>() + 1).ok());
    if (field.type == "integer") {
      EXPECT_FALSE(LoadWith(MinimalJob(), path, low.get<int64_t>() - 1).ok());
      EXPECT_FALSE(LoadWith(MinimalJob(), path, low.get<double>() + 0.5).ok());
    }
    ++checked;
  }
  EXPECT_GT(checked, 8);
}

TEST_F(JobFileDocTest, ExamplesAreAcceptedAndOtherTypesAreNot) {
  for (const auto& [path, field] : DocumentedFields()) {
    SCOPED_TRACE(path);
    if (!field.example.empty()) {
      EXPECT_TRUE(LoadWith(MinimalJob(), path, json::parse(field.example)).ok())
          << LoadWith(MinimalJob(), path, json::parse(field.example));
    }
    EXPECT_FALSE(LoadWith(MinimalJob(), path, nullptr).ok());
    const json of_another_type = field.type == "boolean" ? json(1) : json(true);
    EXPECT_FALSE(LoadWith(MinimalJob(), path, of_another_type).ok());
  }
}

}  // namespace
}  // namespace shoal

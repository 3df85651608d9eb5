#include "cli/trained_model/prediction_format.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/text/utf8.h"
#include "worker/compute/op_math/softmax_rows.h"

// .npy (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), version 1.0:
//
//   file   = "\x93NUMPY" 0x01 0x00 LENGTH dict data
//   LENGTH = u16, little-endian: bytes of `dict`
//   dict   = a Python literal, then blanks and a newline, so that data begins at a multiple of 64
//   data   = the values, little-endian, row-major

namespace shoal {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie");

constexpr size_t kNpyAlignment = 64;
constexpr size_t kNpyPrefixBytes = 10;

// Returns the shortest text that reads back as the same float32.
std::string Digits(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return {text, end};
}

std::string JsonNumber(float value) { return std::isfinite(value) ? Digits(value) : "null"; }

std::string JsonString(const std::string& text) {
  return nlohmann::json(EscapeInvalidUtf8(text)).dump();
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Returns the indexes of the highest values, the highest first; of equal values, the first one
// first.
std::vector<size_t> Highest(std::span<const float> values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  // Not-a-number comes last.
  const auto rank = [&values](size_t i) {
    return std::isnan(values[i]) ? -std::numeric_limits<float>::infinity() : values[i];
  };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<int64_t>(count), order.end(),
      [&rank](size_t a, size_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
  order.resize(count);
  return order;
}

class Npy : public PredictionFormat {
 public:
  explicit Npy(PredictionRows rows) : rows_(std::move(rows)) {}

  std::string Head() const override {
    std::string dict = absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (",
                                    rows_.examples, ", ", absl::StrJoin(rows_.shape, ", "), "), }");
    while ((kNpyPrefixBytes + dict.size() + 1) % kNpyAlignment != 0) dict.push_back(' ');
    dict.push_back('\n');
    std::string head("\x93NUMPY\x01\x00", 8);
    head.push_back(static_cast<char>(dict.size() & 0xff));
    head.push_back(static_cast<char>(dict.size() >> 8));
    return head + dict;
  }
  void AppendRow(const std::string&, std::span<const float> values,
                 std::string* text) const override {
    if (values.empty()) {
      const std::vector<float> none(ElementCount(rows_.shape),
                                    std::numeric_limits<float>::quiet_NaN());
      return AppendRow("", none, text);
    }
    text->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }

 private:
  const PredictionRows rows_;
};

// The common part of the formats for people.
class NamedValues : public PredictionFormat {
 protected:
  explicit NamedValues(PredictionRows rows) : rows_(std::move(rows)) {}

  // Returns the name of value `i` of an output.
  std::string NameOf(size_t i) const {
    return i < rows_.class_names.size() ? rows_.class_names[i] : absl::StrCat(i);
  }
  const PredictionRows rows_;
};

class Csv : public NamedValues {
 public:
  explicit Csv(PredictionRows rows) : NamedValues(std::move(rows)) {}

  std::string Head() const override {
    std::string text = "example";
    for (int i = 1; i <= rows_.top; ++i) absl::StrAppend(&text, ",class_", i, ",output_", i);
    if (rows_.top > 0) return text + "\n";
    const auto values = static_cast<size_t>(ElementCount(rows_.shape));
    if (values == 1) return text + ",output\n";
    for (size_t i = 0; i < values; ++i) absl::StrAppend(&text, ",", CsvField(NameOf(i)));
    return text + "\n";
  }
  void AppendRow(const std::string& example, std::span<const float> values,
                 std::string* text) const override {
    text->append(CsvField(example));
    if (values.empty()) {
      text->append(rows_.top > 0 ? 2 * rows_.top : ElementCount(rows_.shape), ',');
    } else if (rows_.top > 0) {
      for (const size_t i : Highest(values, static_cast<size_t>(rows_.top)))
        absl::StrAppend(text, ",", CsvField(NameOf(i)), ",", Digits(values[i]));
    } else {
      for (const float value : values) absl::StrAppend(text, ",", Digits(value));
    }
    text->push_back('\n');
  }
};

class JsonLines : public NamedValues {
 public:
  explicit JsonLines(PredictionRows rows) : NamedValues(std::move(rows)) {}

  std::string Head() const override { return ""; }
  void AppendRow(const std::string& example, std::span<const float> values,
                 std::string* text) const override {
    absl::StrAppend(text, "{\"example\": ", JsonString(example));
    if (values.empty()) {
      absl::StrAppend(text, rows_.top > 0 ? ", \"top\": null}\n" : ", \"output\": null}\n");
    } else if (rows_.top > 0) {
      absl::StrAppend(text, ", \"top\": [");
      const char* between = "";
      for (const size_t i : Highest(values, static_cast<size_t>(rows_.top))) {
        absl::StrAppend(text, std::exchange(between, ", "), "{\"class\": ", JsonString(NameOf(i)),
                        ", \"output\": ", JsonNumber(values[i]), "}");
      }
      absl::StrAppend(text, "]}\n");
    } else if (!rows_.class_names.empty()) {
      absl::StrAppend(text, ", \"output\": {");
      for (size_t i = 0; i < values.size(); ++i) {
        absl::StrAppend(text, i == 0 ? "" : ", ", JsonString(NameOf(i)), ": ",
                        JsonNumber(values[i]));
      }
      absl::StrAppend(text, "}}\n");
    } else {
      absl::StrAppend(text, ", \"output\": ");
      AppendNested(rows_.shape, values, text);
      absl::StrAppend(text, "}\n");
    }
  }

 private:
  static void AppendNested(std::span<const int64_t> shape, std::span<const float> values,
                           std::string* text) {
    if (shape.empty()) return text->append(JsonNumber(values[0])), void();
    const auto rows = static_cast<size_t>(shape[0]);
    text->push_back('[');
    for (size_t i = 0; i < rows; ++i) {
      if (i > 0) text->append(", ");
      const size_t size = values.size() / rows;
      AppendNested(shape.subspan(1), values.subspan(i * size, size), text);
    }
    text->push_back(']');
  }
};

}  // namespace

std::unique_ptr<PredictionFormat> NpyPredictions(const PredictionRows& rows) {
  return std::make_unique<Npy>(rows);
}
std::unique_ptr<PredictionFormat> CsvPredictions(const PredictionRows& rows) {
  return std::make_unique<Csv>(rows);
}
std::unique_ptr<PredictionFormat> JsonPredictions(const PredictionRows& rows) {
  return std::make_unique<JsonLines>(rows);
}

void MakeProbabilities(size_t classes, std::span<float> values) {
  if (classes == 0) {
    for (float& value : values) value = 1.0f / (1.0f + std::exp(-value));
    return;
  }
  for (; values.size() >= classes; values = values.subspan(classes)) {
    SoftmaxRow(SoftmaxOp::Kind::kSoftmax, values.data(), static_cast<int64_t>(classes),
               values.data());
  }
}

}  // namespace shoal

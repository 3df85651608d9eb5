#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace shoal {

// Makes variants of given JSON texts, for tests that a parser never crashes: changes bytes, drops
// or doubles ranges, replaces values by other types. Its seed determines them all; SHOAL_TEST_SEED
// sets the seed.
class JsonMutator {
 public:
  explicit JsonMutator(std::vector<std::string> texts) : texts_(std::move(texts)) {
    const char* seed = std::getenv("SHOAL_TEST_SEED");
    seed_ = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
    random_.seed(seed_);
  }

  // Returns "SHOAL_TEST_SEED=1", for messages.
  std::string description() const { return "SHOAL_TEST_SEED=" + std::to_string(seed_); }

  std::string Next() {
    std::string text = texts_[Below(texts_.size())];
    for (size_t left = Below(4); left > 0; --left) Mutate(&text);
    return text;
  }

 private:
  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void Mutate(std::string* text) {
    static const char* const kTokens[] = {"null",
                                          "true",
                                          "-1",
                                          "0",
                                          "1e308",
                                          "18446744073709551615",
                                          "0.5",
                                          "\"\"",
                                          "{}",
                                          "[]",
                                          "[[[[",
                                          "\"\\u0000\"",
                                          ",",
                                          ":",
                                          "\"",
                                          "\xff",
                                          "{\"a\":",
                                          "9223372036854775808",
                                          "\"\xc3\xb6\"",
                                          "]",
                                          "}"};
    const size_t at = Below(text->size());
    const size_t length = Below(std::min<size_t>(text->size() - at + 1, 12));
    switch (Below(5)) {
      case 0:
        if (!text->empty()) (*text)[at] = static_cast<char>(random_());
        break;
      case 1:
        text->erase(at, length);
        break;
      case 2:
        text->insert(at, text->substr(at, length));
        break;
      case 3:
        text->replace(at, length, kTokens[Below(std::size(kTokens))]);
        break;
      default:
        ReplaceValue(text, kTokens[Below(std::size(kTokens))]);
    }
  }

  // Replaces the text between a colon or bracket and the next delimiter. The result is mostly still
  // JSON.
  void ReplaceValue(std::string* text, const std::string& token) {
    const size_t begin = text->find_first_of(":[", Below(text->size()));
    if (begin == std::string::npos) return;
    const size_t end = text->find_first_of(",]}", begin);
    if (end == std::string::npos) return;
    text->replace(begin + 1, end - begin - 1, token);
  }

  const std::vector<std::string> texts_;
  uint64_t seed_ = 0;
  std::mt19937_64 random_;
};

}  // namespace shoal

#include "common/json/json_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using nlohmann::json;

std::string Message(const JsonErrors& errors) { return std::string(errors.ToStatus().message()); }

TEST(JsonObjectTest, ReadsFieldsAndKeepsDefaults) {
  const json value = {{"b", true}, {"i", 7}, {"n", 0.5}};
  JsonErrors errors("f");
  JsonObject object(value, "$", &errors);
  bool b = false;
  bool other = true;
  int64_t i = 0;
  double n = 0;
  object.ReadBool("b", &b);
  object.ReadBool("other", &other);
  object.ReadInteger("i", {0, 10}, &i);
  object.ReadNumber("n", {.min = 0, .max = 1}, &n);
  object.RejectUnknownKeys();
  EXPECT_TRUE(errors.ToStatus().ok()) << errors.ToStatus();
  EXPECT_TRUE(b);
  EXPECT_TRUE(other);
  EXPECT_EQ(i, 7);
  EXPECT_EQ(n, 0.5);
}

TEST(JsonObjectTest, SaysWhatIsWrongAndLeavesTheVariable) {
  const json value = {{"i", -3},  {"j", 2.5}, {"k", 18446744073709551615u},
                      {"n", "a"}, {"p", 0},   {"b", 1}};
  JsonErrors errors("f");
  JsonObject object(value, "$.o", &errors);
  int64_t i = 5;
  uint64_t u = 6;
  double n = 7;
  bool b = true;
  object.ReadInteger("i", {1, 10}, &i);
  object.ReadInteger("j", {1, 10}, &u);
  object.ReadInteger("k", {1, INT64_MAX}, &u);
  object.ReadNumber("n", {.min = 0, .max = 1}, &n);
  object.ReadNumber("p", {.min = 0, .max = 0.001, .above_min = true}, &n);
  object.ReadBool("b", &b);
  EXPECT_EQ(i, 5);
  EXPECT_EQ(u, 6u);
  EXPECT_EQ(n, 7);
  EXPECT_TRUE(b);
  EXPECT_EQ(Message(errors),
            "f: $.o.i: is -3; must be an integer from 1 to 10\n"
            "f: $.o.j: is 2.5; must be an integer from 1 to 10\n"
            "f: $.o.k: is 18446744073709551615; must be an integer from 1 to 9223372036854775807\n"
            "f: $.o.n: is \"a\"; must be a number from 0 to 1\n"
            "f: $.o.p: is 0; must be a number greater than 0, at most 0.001\n"
            "f: $.o.b: is 1; must be true or false");
}

TEST(JsonObjectTest, NamesTheNearestKnownKey) {
  const json value = {{"batchsize", 1}, {"zzz", 2}};
  JsonErrors errors("f");
  JsonObject object(value, "$", &errors);
  for (const char* key : {"batch_size", "epochs"}) object.Ignore(key);
  object.RejectUnknownKeys();
  EXPECT_EQ(
      Message(errors),
      "f: $.batchsize: is not a known key; did you mean \"batch_size\"? Known: batch_size, epochs\n"
      "f: $.zzz: is not a known key; known: batch_size, epochs");
}

TEST(JsonObjectTest, AValueThatIsNoObjectIsOneError) {
  const json value = {1, 2};
  JsonErrors errors("f");
  JsonObject object(value, "$.o", &errors);
  EXPECT_EQ(object.Require("a", "something"), nullptr);
  object.RejectUnknownKeys();
  EXPECT_EQ(Message(errors), "f: $.o: is [1,2], an array; must be an object");
}

TEST(JsonObjectTest, NullIsNamedOnce) {
  const json value;
  JsonErrors errors("f");
  JsonObject object(value, "$.o", &errors);
  EXPECT_EQ(Message(errors), "f: $.o: is null; must be an object");
}

TEST(JsonErrorsTest, IsUnimplementedOnlyWhenAllErrorsAre) {
  JsonErrors errors("");
  EXPECT_TRUE(errors.ToStatus().ok());
  errors.AddUnimplemented("$.a", "x");
  EXPECT_EQ(errors.ToStatus(), absl::UnimplementedError("$.a: x"));
  errors.Add("$.b", "y");
  EXPECT_EQ(errors.ToStatus(), absl::InvalidArgumentError("$.a: x\n$.b: y"));
}

TEST(JsonErrorsTest, ShowsNoMoreThanAPersonReads) {
  JsonErrors errors("f");
  for (int i = 0; i < 60; ++i) errors.Add("$", "x");
  EXPECT_THAT(Message(errors), ::testing::EndsWith("\nf: and 10 more errors"));
}

}  // namespace
}  // namespace shoal

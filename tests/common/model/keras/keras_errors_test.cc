// Models, their inputs and how their layers are connected.
#include <algorithm>

#include "tests/common/model/keras/keras_faults.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

TEST(KerasErrorsTest, NotAModel) {
  ExpectError("", kInvalid, {"not JSON"});
  ExpectError("{\"class_name\": \"Sequential\",", kInvalid, {"not JSON", "line 1"});
  ExpectError("[]", kInvalid, {"$: ", "[]"});
  ExpectError("{}", kInvalid, {"$.class_name: "});
  ExpectError(R"({"class_name": "Sequential"})", kInvalid, {"$.config: "});
  ExpectError(R"({"class_name": "Sequental", "config": {}})", kLacking,
              {"$.class_name", "\"Sequential\""});
  ExpectError(R"({"class_name": "Sequential", "config": {"layers": []}})", kInvalid,
              {"$.config.layers"});
  ExpectError(R"({"class_name": "Functional", "config": {"layers": []}})", kInvalid,
              {"$.config.input_layers"});
}

TEST(KerasErrorsTest, DeepNestingIsRejected) {
  ExpectError(std::string(100000, '['), kInvalid, {});
  ExpectError(std::string(100000, '[') + std::string(100000, ']'), kInvalid, {"deep"});
  std::string objects;
  for (int i = 0; i < 5000; ++i) objects += "{\"args\":[";
  ExpectError(objects, kInvalid, {});
}

TEST(KerasErrorsTest, LayersAndModels) {
  ExpectErrors(Cnn(),
               {{"/config/layers/1/class_name",
                 "Conv2d",
                 kLacking,
                 {"$.config.layers[1].class_name", "\"Conv2d\"", "\"Conv2D\"", "MaxPooling2D"}},
                {"/config/layers/1/class_name",
                 "LSTM",
                 kLacking,
                 {"\"LSTM\"", "Activation, ActivityRegularization, Add,"}},
                {"/config/layers/1/class_name", 3, kInvalid, {"$.config.layers[1].class_name"}},
                {"/config/layers/1", 3, kInvalid, {"$.config.layers[1]: ", "got 3"}},
                {"/config/layers/1/registered_name", "mine>Conv2D", kLacking, {"mine>Conv2D"}},
                {"/config/layers/1/module", "mine.layers", kLacking, {"$.config.layers[1].module"}},
                {"/config/layers/1/config", nullptr, kInvalid, {"$.config.layers[1].config"}},
                {"/config/layers/1/config/name", "", kInvalid, {"$.config.layers[1].config.name"}},
                {"/config/layers/2/config/name",
                 "conv",
                 kInvalid,
                 {"$.config.layers[2].config.name", "\"conv\""}},
                {"/config/layers/1/config/dtype",
                 "float16",
                 kLacking,
                 {"$.config.layers[1].config.dtype", "float16"}},
                {"/config/layers/2",
                 LayerJson("InputLayer", "again", {{"batch_shape", {nullptr, 3}}}),
                 kInvalid,
                 {"$.config.layers[2]"}},
                {"/config/layers/2",
                 LayerJson("Subtract", "less", Json::object()),
                 kInvalid,
                 {"$.config.layers[2]", "layer \"less\" (Subtract)", "got 1"}},
                {"/config/activity", "on", kLacking, {"$.config.activity"}},
                {"/config/layers", "none", kInvalid, {"$.config.layers: "}}});
}

TEST(KerasErrorsTest, AWrongInputIsNamed) {
  ExpectErrors(
      Cnn(),
      {{"/config/layers/0/config/batch_shape",
        nullptr,
        kInvalid,
        {"$.config.layers[0].config.batch_input_shape"}},
       {"/config/layers/0/config/batch_shape", Json::array(), kInvalid, {"[null, 28, 28, 1]"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, nullptr, 11, 3},
        kLacking,
        {"$.config.layers[0].config.batch_shape[1]"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, 9, -11, 3},
        kInvalid,
        {"$.config.layers[0].config.batch_shape[2]", "-11 "}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, 2000000000, 2000000000, 2000000000},
        kInvalid,
        {"$.config.layers[0].config.batch_shape", "2^40"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, 20},
        kInvalid,
        {"layer \"conv\" (Conv2D)", "(batch, height, width, channels)", "(None, 20)"}},
       {"/config/layers/0/config/sparse", true, kLacking, {"$.config.layers[0].config.sparse"}},
       {"/config/layers/0/config/ragged", true, kLacking, {"$.config.layers[0].config.ragged"}},
       {"/config/layers/0/config/dtype", "float64", kLacking, {"float64", "float32"}},
       {"/config/layers/0/config/dtype", "string", kLacking, {"string", "float32"}}});
  Json json = Cnn();
  json["config"]["layers"].erase(0);
  ExpectError(json.dump(), kInvalid, {"$.config", "\"conv\"", "build_input_shape", "keras.Input"});
}

// One Dense on an LSTM, and two more whose own options are wrong.
std::vector<Json> LayersWithFaults() {
  return {
      LayerJson("LSTM", "lstm", {{"units", 4}}),
      LayerJson("Conv2D", "conv", {{"filters", 4}, {"kernel_size", {3, 3}}, {"padding", "ful"}}),
      LayerJson("Flatten", "flat", Json::object()),
      LayerJson("GroupNormalization", "norm", Json::object()),
      LayerJson("Dense", "fine", {{"units", 3}}),
      LayerJson("Dense", "dense", {{"units", 3}, {"activation", "rellu"}})};
}

const char* const kPartsOfFaults[] = {"\"LSTM\"", ".config.padding: is \"ful\"",
                                      "\"GroupNormalization\"", ".config.activation: "};

void ExpectALineEach(const absl::Status& status) {
  const std::string message(status.message());
  for (const char* part : kPartsOfFaults) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 3) << message;
}

TEST(KerasErrorsTest, ErrorsOfAllLayersAreReportedTogether) {
  const Json sequential = SequentialJson({nullptr, 9, 9, 3}, LayersWithFaults());
  ExpectALineEach(ParseKerasModel(sequential.dump()).status());

  std::vector<Json> called = {
      CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 9, 9, 3}}}), {})};
  std::string last = "x";
  for (const Json& layer : LayersWithFaults()) {
    called.push_back(CalledJson(layer, {last}));
    last = layer["config"]["name"];
  }
  ExpectALineEach(ParseKerasModel(FunctionalJson(called, "x", last).dump()).status());
}

// Where all layers are known, and one of them, called twice, does not suit its input.
TEST(KerasErrorsTest, AConsequenceOfAnErrorIsNotReported) {
  const auto dense = [](const std::string& name, const std::string& activation) {
    return LayerJson("Dense", name, {{"units", 3}, {"activation", activation}});
  };
  Json shared = CalledJson(dense("shared", "rellu"), {"x"});
  shared["inbound_nodes"].push_back({{"x", 0, 0, Json::object()}});
  const absl::Status status =
      ParseKerasModel(
          FunctionalJson(
              {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 6}}}), {}),
               shared,
               CalledJson(LayerJson("Reshape", "reshape", {{"target_shape", {3, 1, 1}}}),
                          {"shared"}),
               CalledJson(LayerJson("MaxPooling2D", "pool", {{"pool_size", {2, 2}}}), {"reshape"}),
               CalledJson(dense("last", "tan"), {"pool"})},
              "x", "last")
              .dump())
          .status();
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("$.config.layers[1].config.activation: "));
  EXPECT_THAT(message, HasSubstr("\n$.config.layers[4].config.activation: "));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

TEST(KerasErrorsTest, VariablesTooLarge) {
  ExpectError(
      SequentialJson({nullptr, 600}, {LayerJson("Dense", "dense", {{"units", 2147483647}})}).dump(),
      kInvalid,
      {"$.config.layers[1]: layer \"dense\" (Dense)", "kernel", "(600, 2147483647)", "2^40"});
}

TEST(KerasErrorsTest, FunctionalModels) {
  const Json base =
      FunctionalJson({CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}),
                      CalledJson(LayerJson("Dense", "wide", {{"units", 5}}), {"x"}),
                      CalledJson(LayerJson("Dense", "same", {{"units", 4}}), {"x"}),
                      CalledJson(LayerJson("Add", "sum", Json::object()), {"x", "same"})},
                     "x", "sum");
  const std::string node = "$.config.layers[3].inbound_nodes[0]";
  const Json object = Json::object();
  const Json tensor = {{"class_name", "__keras_tensor__"},
                       {"config", {{"keras_history", {"x", 0, 0}}}}};
  ExpectErrors(
      base,
      {{"/config/layers/3/inbound_nodes/0/0/0",
        "sam",
        kInvalid,
        {node + "[0]", "\"sam\"", "\"same\""}},
       {"/config/layers/3/inbound_nodes/0/0/0",
        "wide",
        kInvalid,
        {"$.config.layers[3]: layer \"sum\" (Add)", "(None, 5)", "(None, 4)"}},
       {"/config/layers/3/inbound_nodes/0/0/1", 1, kInvalid, {node + "[0]", "no call 1"}},
       {"/config/layers/3/inbound_nodes/0/0/1", -1, kInvalid, {node + "[0][1]"}},
       {"/config/layers/3/inbound_nodes/0/0/2", 1, kLacking, {node + "[0][2]", "one output"}},
       {"/config/layers/3/inbound_nodes/0/0", {"x", 0}, kInvalid, {node + "[0]"}},
       {"/config/layers/3/inbound_nodes/0/0/3",
        {{"training", true}},
        kLacking,
        {node + "[0][3].training"}},
       {"/config/layers/3/inbound_nodes/0",
        {{"args", {tensor, tensor}}, {"kwargs", {{"training", true}, {"axis", 1}}}},
        kLacking,
        {node + ".kwargs.axis"}},
       {"/config/layers/3/inbound_nodes/0",
        {{"args", {tensor, 3}}, {"kwargs", object}},
        kLacking,
        {node + ".args[1]"}},
       {"/config/layers/3/inbound_nodes/0", {{"args", Json::array()}}, kInvalid, {"layer \"sum\""}},
       {"/config/layers/3/inbound_nodes/0", 5, kInvalid, {node}},
       {"/config/layers/3/inbound_nodes", Json::array(), kInvalid, {"\"sum\""}},
       {"/config/layers/3/inbound_nodes", "x", kInvalid, {"$.config.layers[3].inbound_nodes"}},
       {"/config/layers/0/inbound_nodes",
        Json::array({Json::array({{"x", 0, 0}})}),
        kInvalid,
        {"$.config.layers[0].inbound_nodes"}},
       {"/config/layers/2/config/name", "wide", kInvalid, {"\"wide\""}},
       {"/config/input_layers", Json::array(), kInvalid, {"$.config.input_layers"}},
       {"/config/input_layers",
        {"sum", 0, 0},
        kInvalid,
        {"$.config.input_layers", "not an InputLayer"}},
       {"/config/input_layers",
        Json::array({{"x", 0, 0}, {"x", 0, 0}}),
        kInvalid,
        {"listed twice"}},
       {"/config/output_layers",
        {"nothing", 0, 0},
        kInvalid,
        {"$.config.output_layers", "no layer"}},
       {"/config/output_layers", nullptr, kInvalid, {"$.config.output_layers"}},
       {"/config/layers/1",
        CalledJson(LayerJson("InputLayer", "y", {{"batch_shape", {nullptr, 4}}}), {}),
        kInvalid,
        {"\"y\"", "$.config.input_layers"}}});
}

}  // namespace
}  // namespace shoal

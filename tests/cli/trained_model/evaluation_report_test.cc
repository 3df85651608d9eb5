#include "cli/trained_model/evaluation_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace shoal {
namespace {

TEST(EvaluationReportTest, JsonKeepsPathsApartThatAreNotUtf8) {
  TrainedModel trained;
  trained.step = 5;
  const EvaluationReport report{.examples = 10, .loss = 0.5, .metrics = {{"accuracy", 0.25}}};
  for (const auto& [path, shown] : {std::pair("/run-\xff/step-1", "/run-\\xff/step-1"),
                                    std::pair("/run-\xfe/step-1", "/run-\\xfe/step-1")}) {
    trained.checkpoint = path;
    const nlohmann::json json = nlohmann::json::parse(EvaluationToJson(trained, report));
    EXPECT_EQ(json["checkpoint"].get<std::string>(), shown);
    EXPECT_EQ(json["examples"], 10);
    EXPECT_EQ(json["metrics"]["accuracy"], 0.25);
  }
}

}  // namespace
}  // namespace shoal

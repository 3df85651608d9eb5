// `shoal predict` over a checkpoint that holds Keras's weights, beside what Keras predicts.

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/golden_case/golden_case.h"
#include "cli/local_cluster/child_process.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/files/durable_file.h"
#include "common/job/job.h"
#include "tests/common/base/file_content.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/worker/input/formats/data_file_content.h"

namespace shoal {
namespace {

class PredictProcessTest : public DataFileTest {
 protected:
  // Writes `name`.npy, a row an example.
  std::string WriteNpy(const std::string& name, Shape shape, const std::vector<float>& values) {
    std::string content =
        NpyHeader(1, NpyDict("<f4", absl::StrCat("(", absl::StrJoin(shape, ", "), ",)")));
    content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return Write(name + ".npy", content);
  }

  // A run directory with a checkpoint of the case's weights, after a step of a job that was never
  // trained.
  void WriteRun(const GoldenCase& golden, const std::string& golden_dir) {
    const std::vector<Variable>& variables = golden.model.graph.variables();
    std::ofstream(Path("job.json"))
        << R"({"name": "golden", "loss": "mse", "optimizer": "sgd", "steps": 1, "batch_size": 5,)"
        << R"("data": {"training": {"images": "x.npy", "labels": "x.npy"}}, "model": ")"
        << golden_dir << R"(/model.json"})";
    const absl::StatusOr<Job> job = LoadJob(Path("job.json"), /*check_data=*/false);
    ASSERT_TRUE(job.ok()) << job.status();
    const CheckpointLayout layout = LayOutCheckpoint(variables, {});
    CheckpointStore store(Path("run/checkpoints"));
    const auto directory = store.CreateDirectory(1, MakeTerm(1, 7));
    ASSERT_TRUE(directory.ok()) << directory.status();
    ASSERT_TRUE(CreateCheckpointFiles(layout, *directory).ok());
    CheckpointWriter writer(&layout, *directory);
    for (const Variable& variable : variables) {
      const TensorEntry* entry = golden.tensors->Find("weights/" + variable.name);
      ASSERT_NE(entry, nullptr) << variable.name;
      const std::vector<float> values = *golden.tensors->ReadFloats(*entry);
      ASSERT_TRUE(
          writer.Write(variable.name, 0, values.data(), values.size() * sizeof(float)).ok());
    }
    const std::vector<WrittenPart> parts = *writer.Finish();
    Manifest manifest = SmallManifest(MakeTerm(1, 7), 1);
    manifest.job_name = job->name;
    manifest.job_fingerprint = job->Fingerprint();
    manifest.slots.clear();
    const auto stored =
        store.Commit(*directory, layout, parts,
                     {{kJobName, job->ResolvedText()}, {kModelName, job->model_json}}, manifest);
    ASSERT_TRUE(stored.ok()) << stored.status();
  }

  // Its exit, with what it said in `output_`.
  std::string Predict(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"predict", Path("run")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto child = ChildProcess::Spawn({.program = SHOAL_BINARY, .arguments = all});
    if (!child.ok()) return child.status().ToString();
    output_.clear();
    char buffer[4096];
    pollfd readable = {.fd = (*child)->output(), .events = POLLIN};
    // Until the end of the output, or a minute of silence.
    while (poll(&readable, 1, /*timeout_ms=*/60'000) == 1) {
      const ssize_t size = read((*child)->output(), buffer, sizeof(buffer));
      if (size == 0) break;
      if (size > 0) output_.append(buffer, size);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
      if (const auto exit = (*child)->TryReap()) return exit->ToString();
      poll(nullptr, 0, /*timeout_ms=*/1);
    }
    return "not ended after a minute";
  }

  std::string output_;
};

// A batch size that leaves a rest.
TEST_F(PredictProcessTest, EqualsWhatKerasPredicts) {
  const std::string directory = absl::StrCat(SHOAL_SOURCE_DIR, "/tests/golden/fashion_cnn");
  const auto golden = GoldenCase::Load(directory);
  ASSERT_TRUE(golden.ok()) << golden.status();
  ASSERT_NE(golden->examples % 5, 0);
  const Graph& graph = golden->model.graph;
  Shape shape = graph.value(graph.inputs()[0]).shape;
  shape[0] = golden->examples;
  const std::string input = WriteNpy("x", shape, golden->inputs[0]);
  WriteRun(*golden, directory);
  EXPECT_EQ(Predict({input, "--output", Path("out.npy")}), "exit code 0") << output_;
  const std::string written = FileContent(Path("out.npy"));
  const std::vector<float> expected =
      *golden->tensors->ReadFloats(*golden->tensors->Find("output/inference"));
  ASSERT_EQ(written.size(), 128 + expected.size() * sizeof(float));
  EXPECT_NE(written.find(absl::StrCat("'shape': (", golden->examples, ", ")), std::string::npos);
  std::vector<float> values(expected.size());
  std::memcpy(values.data(), written.data() + 128, values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace shoal

#include "tests/ps/parameter_server_fixture.h"

#include "common/base/crc32c.h"
#include "common/base/version.h"
#include "common/checkpoint/manifest.h"
#include "common/model/keras_model.h"

namespace shoal {
namespace {

constexpr char kModel[] = R"json({
  "class_name": "Sequential",
  "config": {
    "name": "sequential",
    "layers": [
      {"class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 6]}},
      {"class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "relu"}},
      {"class_name": "Dense", "config": {"name": "output", "units": 10, "activation": "softmax"}}
    ]
  }
})json";

}  // namespace

Job TestJob() {
  Job job;
  job.name = "test";
  job.model_json = kModel;
  job.training = {.images = "/data/images", .labels = "/data/labels"};
  job.loss = R"("sparse_categorical_crossentropy")";
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1}})";
  job.steps = 100;
  job.strategy.chunk_bytes = 48 * 4;
  job.strategy.window_steps = 64;
  job.seed = 3;
  return job;
}

std::vector<Variable> JobVariables(const Job& job) {
  const auto model = ParseKerasModel(job.model_json);
  EXPECT_TRUE(model.ok()) << model.status();
  return model->graph.variables();
}

void ParameterServerTest::Restart() {
  server_.reset();
  loop_ = std::make_unique<FakeLoop>();
  server_ = std::make_unique<ParameterServer>(ParameterServer::Options{
      .index = 0,
      .incarnation = kIncarnation,
      .loop = loop_.get(),
      .files = files_,
      .control = {.memory = memory_,
                  .on_memory_needs = [this](uint64_t bytes) { memory_needs_.push_back(bytes); },
                  .on_stopped = [this] { ++stops_; }}});
}

ParameterServerTest::Client ParameterServerTest::Connect(const std::string& method,
                                                         proto::ServerHello* hello) {
  Client client;
  client.received = std::make_shared<Received>();
  auto callbacks = server_->Accept(method, std::make_unique<FakeStream>(client.received));
  EXPECT_TRUE(callbacks.ok()) << callbacks.status();
  EXPECT_TRUE(client.quiet()) << "the stream was used before Accept had returned";
  client.callbacks = *std::move(callbacks);
  loop_->RunPosted();
  proto::ServerHello got = method == kControlMethod ? client.Take<proto::ControlReply>().hello()
                                                    : client.Take<proto::ExchangeReply>().hello();
  EXPECT_EQ(got.incarnation(), kIncarnation);
  if (hello != nullptr) *hello = got;
  return client;
}

ParameterServerTest::Client ParameterServerTest::ConnectWorker(uint32_t shard_map_fingerprint) {
  Client client = Connect(kExchangeMethod);
  proto::ExchangeRequest request;
  request.mutable_hello()->set_version(kVersion);
  request.mutable_hello()->set_worker(1);
  request.mutable_hello()->set_shard_map_fingerprint(shard_map_fingerprint);
  request.mutable_hello()->set_job_fingerprint(job_fingerprint_);
  client.callbacks.on_message(MakeMessage(request));
  return client;
}

void ParameterServerTest::SendOnly(Client& client, const proto::ControlRequest& request) {
  client.callbacks.on_message(MakeMessage(request));
  loop_->RunPosted();
}

proto::ControlReply ParameterServerTest::Ask(Client& client, const proto::ControlRequest& request) {
  client.callbacks.on_message(MakeMessage(request));
  loop_->RunUntilIdle();
  return client.Take<proto::ControlReply>();
}

proto::ExchangeReply ParameterServerTest::Ask(Client& client, const proto::ExchangeRequest& request,
                                              std::vector<Slice> payload) {
  client.callbacks.on_message(MakeMessage(request, std::move(payload)));
  return client.Take<proto::ExchangeReply>();
}

proto::ControlRequest ParameterServerTest::Claim(uint64_t term, uint64_t training_examples) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_claim()->set_version(kVersion);
  request.mutable_claim()->set_training_examples(training_examples);
  return request;
}

proto::ControlRequest ParameterServerTest::Load(uint64_t term, const std::string& job,
                                                const std::string& checkpoint, uint32_t ps_count) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_load()->set_incarnation(kIncarnation);
  request.mutable_load()->set_job(job);
  request.mutable_load()->set_ps_count(ps_count);
  request.mutable_load()->set_checkpoint(checkpoint);
  // As the coordinator does that wrote it.
  if (const auto manifest = Manifest::Read(checkpoint); manifest.ok()) {
    const std::string text = manifest->ToText();
    request.mutable_load()->set_manifest_checksum(Crc32c(text));
    request.mutable_load()->set_cut_step(manifest->cut_step);
  }
  return request;
}

proto::ControlRequest ParameterServerTest::Fence(uint64_t term, uint64_t timeline,
                                                 uint64_t cut_step, const std::string& directory,
                                                 bool hold) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_fence()->set_timeline(timeline);
  request.mutable_fence()->set_cut_step(cut_step);
  request.mutable_fence()->set_directory(directory);
  if (!directory.empty()) request.mutable_fence()->set_marker(kMarker);
  request.mutable_fence()->set_hold(hold);
  return request;
}

proto::ControlRequest ParameterServerTest::Release(uint64_t term, uint64_t cut_step) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_release()->set_cut_step(cut_step);
  return request;
}

proto::ControlRequest ParameterServerTest::Stop(uint64_t term) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_stop();
  return request;
}

proto::ExchangeRequest ParameterServerTest::Pull(uint64_t timeline, uint32_t first, uint32_t count,
                                                 uint64_t cut_step) {
  proto::ExchangeRequest request;
  request.mutable_pull()->set_timeline(timeline);
  request.mutable_pull()->set_first_chunk(first);
  request.mutable_pull()->set_chunk_count(count);
  request.mutable_pull()->set_cut_step(cut_step);
  return request;
}

void ParameterServerTest::ClaimWith(Client& control, uint64_t term) {
  SendOnly(control, Claim(term));
  EXPECT_TRUE(control.Take<proto::ControlReply>().has_claimed());
}

ParameterServerTest::Client ParameterServerTest::ConnectCoordinator(uint64_t term) {
  Client control = ConnectControl();
  ClaimWith(control, term);
  return control;
}

void ParameterServerTest::LoadJob(Client& control, uint64_t term) {
  EXPECT_TRUE(Ask(control, Claim(term)).has_claimed());
  const proto::ControlReply reply = Ask(control, Load(term, job_.ResolvedText()));
  ASSERT_EQ(reply.loaded().timeline(), term) << reply.DebugString();
}

proto::ExchangeReply ParameterServerTest::Push(Client& worker, uint64_t timeline, uint64_t step,
                                               uint32_t chunk, bool want_values,
                                               uint64_t pulled_version) {
  proto::ExchangeRequest request;
  request.mutable_push()->set_timeline(timeline);
  request.mutable_push()->set_step(step);
  request.mutable_push()->set_chunk(chunk);
  request.mutable_push()->set_pulled_version(pulled_version);
  request.mutable_push()->set_want_values(want_values);
  const auto ones = std::make_shared<std::vector<float>>(shard_map_.ps(0).chunks[chunk].size, 1.0f);
  const auto* data = reinterpret_cast<const char*>(ones->data());
  return Ask(worker, request, {{data, ones->size() * sizeof(float), ones}});
}

proto::ExchangeReply ParameterServerTest::PushSkip(Client& worker, uint64_t timeline, uint64_t step,
                                                   uint32_t chunk, bool want_values) {
  proto::ExchangeRequest request;
  request.mutable_push()->set_timeline(timeline);
  request.mutable_push()->set_step(step);
  request.mutable_push()->set_chunk(chunk);
  request.mutable_push()->set_want_values(want_values);
  request.mutable_push()->set_skip(true);
  return Ask(worker, request);
}

void ParameterServerTest::PushStep(Client& worker, uint64_t timeline, uint64_t step) {
  for (uint32_t k = 0; k < shard_map_.ps(0).chunks.size(); ++k) {
    EXPECT_TRUE(Push(worker, timeline, step, k).has_applied());
  }
}

std::vector<float> ParameterServerTest::Values(Client& worker, uint64_t timeline, uint32_t chunk,
                                               uint64_t cut_step) {
  const proto::ExchangeReply reply = Ask(worker, Pull(timeline, chunk, 1, cut_step));
  EXPECT_TRUE(reply.has_values()) << reply.DebugString();
  Message message;
  message.payload = worker.payload;
  std::vector<float> values(message.payload_bytes() / sizeof(float));
  CopyPayload(message, 0, values.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace shoal

#include "common/monitoring/http_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <deque>
#include <future>
#include <thread>

#include "tests/common/monitoring/http_client.h"

namespace shoal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::chrono::seconds kPatience{60};

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    auto server = HttpServer::Start("127.0.0.1:0", {.handler = HelloOr404});
    server_ = *std::move(server);
  }
  static HttpReply HelloOr404(const HttpRequest& request) {
    return request.path == "/page" ? HttpReply{200, "hello\n"}
                                   : HttpReply{404, "no " + request.path + "\n"};
  }
  std::string Get(const std::string& path) { return Request(server_->address(), "GET " + path); }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersWithThePage) {
  const std::string answer = Get("/page");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello\n"));
  EXPECT_THAT(Get("/page?x=1"), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, HeadIsAnsweredWithoutThePage) {
  const std::string answer = Request(server_->address(), "HEAD /page");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, NothingElseIsServed) {
  EXPECT_THAT(Get("/other"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/../../../../etc/passwd"), Not(HasSubstr("root:")));
  EXPECT_THAT(Get("/%2e%2e/etc/passwd"), Not(HasSubstr("root:")));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const std::string answer = Request(server_->address(), std::string(method) + " /page");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("\r\nAllow: GET, HEAD\r\n")) << method;
  }
}

TEST_F(HttpServerTest, TheHandlerSeesTheAuthorization) {
  server_ = HttpServer::Start("127.0.0.1:0",
                              {.handler =
                                   [](const HttpRequest& request) {
                                     return HttpReply{200, "<" + request.authorization + ">"};
                                   }})
                .value();
  EXPECT_THAT(Get("/"), EndsWith("<>"));
  EXPECT_THAT(Request(server_->address(), "GET /", "authorization: Bearer x\r\n"),
              EndsWith("<Bearer x>"));
}

TEST_F(HttpServerTest, APlainServerTakesNoCertificates) {
  EXPECT_EQ(server_->SetTls({}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Get("/page"), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, ABodyIsIgnored) {
  HttpClient client(server_->address());
  client.Send("GET /page HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde");
  EXPECT_THAT(client.Receive(), EndsWith("\r\n\r\nhello\n"));
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  const auto second = HttpServer::Start(server_->address(), {.handler = HelloOr404});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(server_->address()));
}

TEST_F(HttpServerTest, AnInvalidRequestEndsItsConnectionOnly) {
  for (const std::string& garbage :
       {std::string("\0\1\2\3\r\n\r\n", 8), std::string("GET\r\n\r\n"), std::string(5, '\n'),
        std::string("GET /page HTTP/9.9\r\n\r\n")}) {
    HttpClient client(server_->address());
    client.Send(garbage);
    EXPECT_THAT(client.Receive(), Not(HasSubstr("hello")));
  }
  EXPECT_THAT(Get("/page"), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, ARequestThatIsTooLongIsRejected) {
  HttpClient client(server_->address());
  client.Send("GET /page HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n");
  EXPECT_THAT(client.Receive(), Not(HasSubstr("hello")));
  EXPECT_THAT(Get("/page"), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, AClientThatTricklesItsRequestIsCutOff) {
  HttpClient client(server_->address());
  ASSERT_TRUE(client.Send("GET /page HTTP/1.1\r\nX: "));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  bool cut_off = false;
  while (!cut_off && std::chrono::steady_clock::now() < deadline) {
    cut_off = client.ClosedWithin(std::chrono::milliseconds(100)) || !client.Send("x");
  }
  EXPECT_TRUE(cut_off);
}

// As a slow network makes them: what is not sent yet when the answer is complete still arrives.
TEST_F(HttpServerTest, ALargePageArrivesWholeAtASlowClient) {
  const std::string page(8 << 20, 'x');
  const auto server = HttpServer::Start("127.0.0.1:0", {.handler = [&](const HttpRequest&) {
                                          return HttpReply{200, page};
                                        }});
  ASSERT_TRUE(server.ok());
  HttpClient client((*server)->address(), /*receive_buffer_bytes=*/4096);
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.Receive(), EndsWith(page));
}

// As a probe that gives up after a few seconds needs it: nobody's time has to be over first.
TEST_F(HttpServerTest, SilentClientsKeepNobodyWaiting) {
  server_ =
      HttpServer::Start("127.0.0.1:0", {.handler = HelloOr404, .patience = std::chrono::hours(1)})
          .value();
  std::deque<HttpClient> silent;
  for (int i = 0; i < 200; ++i) silent.emplace_back(server_->address()).Send("GET /pa");
  for (int i = 0; i < 6; ++i) EXPECT_THAT(Get("/page"), EndsWith("hello\n"));
  EXPECT_TRUE(silent.front().ClosedWithin(kPatience));
  EXPECT_FALSE(silent.back().ClosedWithin(std::chrono::milliseconds(0)));
}

TEST_F(HttpServerTest, ClientsThatDoNotTakeTheirAnswerKeepNobodyWaiting) {
  server_ = HttpServer::Start(
                "127.0.0.1:0",
                {.handler =
                     [page = std::string(8 << 20, 'x')](const HttpRequest& request) {
                       return request.path == "/large" ? HttpReply{200, page} : HelloOr404(request);
                     },
                 .patience = std::chrono::hours(1)})
                .value();
  std::deque<HttpClient> clients;
  for (int i = 0; i < 100; ++i)
    clients.emplace_back(server_->address(), 4096).Send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Get("/page"), EndsWith("hello\n"));
}

// A stranger with many connections ends its own ones only.
TEST_F(HttpServerTest, AnAddressHasAShareOfTheConnections) {
  server_ =
      HttpServer::Start("127.0.0.1:0", {.handler = HelloOr404, .patience = std::chrono::hours(1)})
          .value();
  HttpClient first(server_->address());
  ASSERT_TRUE(first.Send("GET /pa"));
  std::deque<HttpClient> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(server_->address(), 0, "127.0.0.2");
  EXPECT_TRUE(crowd.front().ClosedWithin(kPatience));
  EXPECT_THAT(Get("/page"), EndsWith("hello\n"));
  ASSERT_TRUE(first.Send("ge HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(first.Receive(), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, NoDescriptorIsInherited) {
  std::promise<void> answering, answer;
  server_ = HttpServer::Start("127.0.0.1:0", {.handler =
                                                  [&](const HttpRequest&) {
                                                    answering.set_value();
                                                    answer.get_future().wait();
                                                    return HttpReply{200, "hello\n"};
                                                  }})
                .value();
  HttpClient client(server_->address());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  answering.get_future().wait();
  for (int fd = 3; fd < 256; ++fd) {
    struct stat found = {};
    if (fstat(fd, &found) != 0 || !S_ISSOCK(found.st_mode)) continue;
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << fd;
  }
  answer.set_value();
  EXPECT_THAT(client.Receive(), EndsWith("hello\n"));
}

// More requests than threads: some are answered, some wait.
TEST_F(HttpServerTest, AStopEndsTheRequestsThatWait) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<int> answering = 0;
  server_ = HttpServer::Start("127.0.0.1:0", {.handler =
                                                  [&](const HttpRequest&) {
                                                    ++answering;
                                                    answered.wait();
                                                    return HttpReply{200, "hello\n"};
                                                  }})
                .value();
  std::deque<HttpClient> clients;
  for (int i = 0; i < 12; ++i)
    clients.emplace_back(server_->address()).Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  while (answering < 4) std::this_thread::yield();
  std::thread stop([&] { server_.reset(); });
  answer.set_value();
  stop.join();
  for (HttpClient& each : clients)
    EXPECT_TRUE(each.ClosedWithin(kPatience) || !each.Receive().empty());
}

}  // namespace
}  // namespace shoal

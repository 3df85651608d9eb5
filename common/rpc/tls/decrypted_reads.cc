#include "common/rpc/tls/decrypted_reads.h"

#include <grpc/support/log.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/check.h"
#include "common/rpc/admission/frame_scanner.h"
#include "common/rpc/methods.h"
#include "common/security/certificate.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

struct DecryptedFrames {
  FrameScanner scanner;
  bool flooded = false;
};

// Where a connection keeps its DecryptedFrames; -1: no connection is limited.
std::atomic<int> slot = -1;

// OpenSSL calls it at the end of every connection, also of those that have none.
void DeleteFrames(void* /*connection*/, void* frames, CRYPTO_EX_DATA* /*data*/, int /*slot*/,
                  long /*argument*/, void* /*pointer*/) {
  delete static_cast<DecryptedFrames*>(frames);
}

// Returns nothing for a certificate that breaks a rule.
std::optional<Role> RoleIn(const X509* certificate) {
  unsigned char* der = nullptr;
  const int size = certificate == nullptr ? 0 : i2d_X509(certificate, &der);
  if (size <= 0) return std::nullopt;
  const absl::Cleanup free = [der] { OPENSSL_free(der); };
  const absl::StatusOr<Certificate> read =
      ReadCertificate(std::string_view(reinterpret_cast<const char*>(der), size));
  return read.ok() ? std::optional<Role>(read->identity.role) : std::nullopt;
}

// The max length of a message of the client, over all methods of this server that it may use.
uint64_t MaxMessageBytes(const SSL* connection) {
  size_t max = TraitsOf("").max_request_bytes;
  const std::optional<Role> own = RoleIn(SSL_get_certificate(connection));
  const std::optional<Role> client = RoleIn(SSL_get0_peer_certificate(connection));
  if (!own.has_value() || !client.has_value()) return max;
  for (const Permission& row : Permissions()) {
    if (!row.servers.Contains(*own) || !row.clients.Contains(*client)) continue;
    const MethodTraits traits = TraitsOf(std::string(row.method));
    max = std::max({max, traits.max_request_bytes, traits.max_trusted_request_bytes});
  }
  return max;
}

// Only the server's end of a connection is.
bool IsLimited(const SSL* connection) { return slot >= 0 && SSL_is_server(connection) != 0; }

// Returns null without memory. One thread at a time reads from a connection.
DecryptedFrames* FramesOf(SSL* connection) {
  const int place = slot;
  auto* const known = static_cast<DecryptedFrames*>(SSL_get_ex_data(connection, place));
  if (known != nullptr) return known;
  auto frames = std::make_unique<DecryptedFrames>();
  frames->scanner.messages().set_max_bytes(MaxMessageBytes(connection));
  return SSL_set_ex_data(connection, place, frames.get()) == 1 ? frames.release() : nullptr;
}

bool Accept(DecryptedFrames* frames, const void* data, size_t size) {
  return !frames->flooded && frames->scanner.Accept(static_cast<const uint8_t*>(data), size) &&
         frames->scanner.messages().TakeTooLong() == 0;
}

}  // namespace

void LimitDecryptedReads() {
  static const int taken = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, DeleteFrames);
  SHOAL_CHECK(taken >= 0, "OpenSSL has no place for the state of a connection");
  slot = taken;
}

}  // namespace shoal

// Replaces OpenSSL's SSL_read. gRPC, a shared library, calls the program's SSL_read, which
// CMakeLists.txt exports. Under TLS, recvmsg (admission/receiving_limit.cc) sees ciphertext.
extern "C" int SSL_read(SSL* connection, void* buffer, int size) {
  size_t read = 0;
  if (SSL_read_ex(connection, buffer, static_cast<size_t>(size), &read) != 1) return -1;
  if (!shoal::IsLimited(connection)) return static_cast<int>(read);
  shoal::DecryptedFrames* const frames = shoal::FramesOf(connection);
  if (frames != nullptr && shoal::Accept(frames, buffer, read)) return static_cast<int>(read);
  if (frames != nullptr && !std::exchange(frames->flooded, true)) {
    gpr_log(GPR_ERROR,
            "ended a connection: its client sends headers without end, or a message that is too "
            "long for its role");
  }
  return -1;  // without an error of OpenSSL: gRPC then ends the connection
}

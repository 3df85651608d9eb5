#include "common/monitoring/tls_credentials.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

gnutls_datum_t DatumOf(const std::string& text) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

// Returns why a certificate is not accepted, in GnuTLS's words.
std::string TextOf(unsigned verification_status) {
  gnutls_datum_t text = {};
  if (gnutls_certificate_verification_status_print(verification_status, GNUTLS_CRT_X509, &text, 0) <
      0) {
    return "it does not verify";
  }
  std::string copy(reinterpret_cast<const char*>(text.data), text.size);
  absl::StripAsciiWhitespace(&copy);
  gnutls_free(text.data);
  return copy;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsCredentials>> TlsCredentials::Make(const TlsPem& pem) {
  gnutls_certificate_credentials_t made = nullptr;
  if (gnutls_certificate_allocate_credentials(&made) < 0) {
    return absl::ResourceExhaustedError("no memory for the certificates of the HTTP port");
  }
  std::shared_ptr<const TlsCredentials> credentials(
      new TlsCredentials(made, /*asks_clients=*/!pem.ca.empty()));
  const gnutls_datum_t certificate = DatumOf(pem.certificate);
  const gnutls_datum_t key = DatumOf(pem.key);
  const int taken = gnutls_certificate_set_x509_key_mem2(made, &certificate, &key,
                                                         GNUTLS_X509_FMT_PEM, nullptr, 0);
  if (taken < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate and key of the HTTP port are not a pair of PEM texts: ",
                     gnutls_strerror(taken)));
  }
  if (pem.ca.empty()) return credentials;
  const gnutls_datum_t ca = DatumOf(pem.ca);
  const int count = gnutls_certificate_set_x509_trust_mem(made, &ca, GNUTLS_X509_FMT_PEM);
  if (count <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the CA of the HTTP port is no PEM text with certificates: ",
                     count < 0 ? gnutls_strerror(count) : "it has none"));
  }
  return credentials;
}

TlsCredentials::~TlsCredentials() { gnutls_certificate_free_credentials(credentials_); }

void TlsCredentials::Use(gnutls_session_t session) const {
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials_);
  if (asks_clients_) gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
}

absl::StatusOr<std::string> ClientCertificate(gnutls_session_t session) {
  unsigned count = 0;
  const gnutls_datum_t* const chain = gnutls_certificate_get_peers(session, &count);
  if (chain == nullptr || count == 0) return std::string();
  char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
  gnutls_typed_vdata_st use = {GNUTLS_DT_KEY_PURPOSE_OID, reinterpret_cast<unsigned char*>(purpose),
                               0};
  unsigned status = 0;
  const int verified = gnutls_certificate_verify_peers(session, &use, 1, &status);
  if (verified < 0) return absl::PermissionDeniedError(gnutls_strerror(verified));
  if (status != 0) return absl::PermissionDeniedError(TextOf(status));
  return std::string(reinterpret_cast<const char*>(chain[0].data), chain[0].size);
}

}  // namespace shoal

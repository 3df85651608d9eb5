#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "tests/common/monitoring/http_client.h"

namespace shoal {

// PEM texts, and the certificate as DER.
struct TestIdentity {
  std::string certificate;
  std::string key;
  std::string der;
};

// A certificate authority that lives in memory. The tests use OpenSSL, the server GnuTLS.
class TestCa {
 public:
  struct Terms {
    std::string purposes = "serverAuth,clientAuth";
    std::chrono::seconds valid_for = std::chrono::hours(1);  // from an hour ago on
  };

  explicit TestCa(const std::string& name) : key_(EVP_EC_gen("P-256")) {
    certificate_ = Make(name, key_.get(), std::chrono::hours(1));
    Extend(NID_basic_constraints, "critical,CA:TRUE", certificate_.get());
    Sign(certificate_.get());
  }

  std::string pem() const { return PemOf(certificate_.get()); }

  // Returns a certificate for 127.0.0.1 with this URI, and its key.
  TestIdentity Issue(const std::string& uri, const Terms& terms) const {
    const Pointer<EVP_PKEY> key(EVP_EC_gen("P-256"));
    const Pointer<X509> made = Make("", key.get(), terms.valid_for);
    Extend(NID_subject_alt_name, "URI:" + uri + ",IP:127.0.0.1", made.get());
    Extend(NID_ext_key_usage, terms.purposes, made.get());
    Sign(made.get());
    const Pointer<BIO> key_text(BIO_new(BIO_s_mem()));
    SHOAL_CHECK(PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                         nullptr) == 1,
                uri);
    const Pointer<BIO> der(BIO_new(BIO_s_mem()));
    SHOAL_CHECK(i2d_X509_bio(der.get(), made.get()) == 1, uri);
    return {PemOf(made.get()), TextOf(key_text.get()), TextOf(der.get())};
  }
  TestIdentity Issue(const std::string& uri) const { return Issue(uri, Terms()); }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };
  template <typename T>
  using Pointer = std::unique_ptr<T, Free>;

  static std::string TextOf(BIO* bio) {
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio, &text);
    return {text, static_cast<size_t>(size)};
  }
  static std::string PemOf(X509* certificate) {
    const Pointer<BIO> bio(BIO_new(BIO_s_mem()));
    SHOAL_CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1, "a certificate as PEM");
    return TextOf(bio.get());
  }

  // Returns a certificate that is not signed yet. The subject is `name`, if any.
  Pointer<X509> Make(const std::string& name, EVP_PKEY* key, std::chrono::seconds valid_for) const {
    static long serial = 0;
    Pointer<X509> made(X509_new());
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
    constexpr long kHour = 3600;
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -kHour);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), valid_for.count());
    X509_set_pubkey(made.get(), key);
    if (!name.empty()) {
      X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    }
    const X509* const issuer = certificate_ == nullptr ? made.get() : certificate_.get();
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
    return made;
  }
  static void Extend(int what, const std::string& value, X509* certificate) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    SHOAL_CHECK(extension != nullptr, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  void Sign(X509* certificate) const {
    SHOAL_CHECK(X509_sign(certificate, key_.get(), EVP_sha256()) > 0, "a certificate");
  }

  const Pointer<EVP_PKEY> key_;
  Pointer<X509> certificate_;
};

struct TlsClientOptions {
  std::string ca;            // PEM: whom the client trusts
  TestIdentity client = {};  // its certificate, if any
  int max_version = TLS1_3_VERSION;
};

// Returns the whole answer, with headers, to a request with this first line over TLS. Returns ""
// if the handshake fails on either side.
inline std::string TlsRequest(const std::string& address, const std::string& line,
                              const TlsClientOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // for SSL_write
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const auto memory = [](const std::string& text) {
    return std::unique_ptr<BIO, decltype(&BIO_free)>(
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  };
  X509* const ca = PEM_read_bio_X509(memory(options.ca).get(), nullptr, nullptr, nullptr);
  SHOAL_CHECK(ca != nullptr, "the CA that a client trusts");
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca);
  X509_free(ca);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_max_proto_version(context.get(), options.max_version);
  if (!options.client.certificate.empty()) {
    X509* const own =
        PEM_read_bio_X509(memory(options.client.certificate).get(), nullptr, nullptr, nullptr);
    EVP_PKEY* const key =
        PEM_read_bio_PrivateKey(memory(options.client.key).get(), nullptr, nullptr, nullptr);
    SHOAL_CHECK(SSL_CTX_use_certificate(context.get(), own) == 1 &&
                    SSL_CTX_use_PrivateKey(context.get(), key) == 1,
                "certificate and key of a client");
    X509_free(own);
    EVP_PKEY_free(key);
  }
  HttpClient client(address);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(ssl.get(), client.fd());
  const std::string request = line + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string text;
  if (SSL_connect(ssl.get()) == 1 &&
      SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())) > 0) {
    char buffer[4096];
    for (int count; (count = SSL_read(ssl.get(), buffer, sizeof(buffer))) > 0;)
      text.append(buffer, count);
  }
  ERR_clear_error();
  return text;
}

}  // namespace shoal

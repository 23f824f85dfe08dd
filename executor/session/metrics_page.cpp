#include "executor/session/metrics_page.hpp"

#include <fmt/format.h>

#include <utility>  // Boost 1.74's Asio needs it first

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds for_one_reader{1};
constexpr std::chrono::milliseconds until_accepting_again{100};  // when descriptors have run out
constexpr std::size_t most_readers = 64;                         // at once
constexpr std::uint32_t longest_request = 8192;                  // bytes

asio::ip::address parsed(const std::string& host) {
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) return address;
  throw InputError{
      "--metrics-address",
      fmt::format("expected an IP address such as 127.0.0.1 or 0.0.0.0, found '{}'", host)};
}

}  // namespace

/// Answers one request: GET /metrics with the page, anything else with an error.
class MetricsPage::Reader : public std::enable_shared_from_this<Reader> {
 public:
  Reader(tcp::socket socket, const std::function<std::string()>& page)
      : stream_{std::move(socket)}, page_{page} {
    request_.emplace();
    request_->header_limit(longest_request);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void serve() {
    stream_.expires_after(for_one_reader);  // for all of it
    http::async_read_header(stream_, buffer_, *request_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (!error) self->answer();
                            });
  }
  /// Has it asked for nothing yet?
  bool silent() const { return silent_; }
  void drop() { stream_.close(); }

 private:
  void answer() {
    silent_ = false;
    answer_.version(11);
    const auto& asked = request_->get();
    const auto named = asked.target();
    const std::string_view target{named.data(), named.size()};
    const bool known = target.substr(0, target.find('?')) == "/metrics";
    const bool reads = asked.method() == http::verb::get;
    answer_.result(!known   ? http::status::not_found
                   : !reads ? http::status::method_not_allowed
                            : http::status::ok);
    answer_.set(http::field::content_type, "text/plain; version=0.0.4");
    if (known && !reads) answer_.set(http::field::allow, "GET");
    answer_.keep_alive(false);
    answer_.body() = !known ? "the page is /metrics\n" : !reads ? "GET reads it\n" : page_();
    answer_.prepare_payload();
    http::async_write(stream_, answer_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
                      });
  }

  beast::tcp_stream stream_;
  const std::function<std::string()>& page_;
  bool silent_ = true;
  beast::flat_buffer buffer_{longest_request};
  std::optional<http::request_parser<http::empty_body>> request_;
  http::response<http::string_body> answer_;
};

class MetricsPage::Server {
 public:
  Server(const Address& where, std::function<std::string()> page) : page_{std::move(page)} {
    const tcp::endpoint end{parsed(where.host), where.port};
    try {
      acceptor_.open(end.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address{true});
      acceptor_.bind(end);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw InputError{"--metrics-port", fmt::format("cannot listen on {}: {}", text_of(where),
                                                     error.code().message())};
    }
    accept();
    thread_ = std::thread{[this] { context_.run(); }};
  }
  ~Server() {
    context_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return accept_later();
      if (make_room()) {
        const auto reader = std::make_shared<Reader>(std::move(socket), page_);
        readers_.push_back(reader);
        reader->serve();
      }
      accept();
    });
  }
  /// Where there are too many readers, drops the one that has been silent longest: connections
  /// that never ask shut nobody out. False if all of them are being answered.
  bool make_room() {
    readers_.remove_if([](const std::weak_ptr<Reader>& each) { return each.expired(); });
    if (readers_.size() < most_readers) return true;
    const auto oldest = std::ranges::find_if(
        readers_, [](const std::weak_ptr<Reader>& each) { return each.lock()->silent(); });
    if (oldest == readers_.end()) return false;
    oldest->lock()->drop();
    readers_.erase(oldest);
    return true;
  }
  void accept_later() {
    pause_.expires_after(until_accepting_again);
    pause_.async_wait([this](beast::error_code error) {
      if (!error) accept();
    });
  }

  std::function<std::string()> page_;
  std::list<std::weak_ptr<Reader>> readers_;  // in the order of their arrival
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

MetricsPage::MetricsPage(const Address& where)
    : server_{std::make_unique<Server>(where, [this] { return page(); })} {}

MetricsPage::~MetricsPage() = default;

void MetricsPage::set(const std::string& name, Kind kind, const std::string& help, double value) {
  const std::lock_guard guard{lock_};
  metrics_[name] = {kind, help, value};
}

std::string MetricsPage::page() const {
  const std::lock_guard guard{lock_};
  std::string text, last;
  for (const auto& [name, metric] : metrics_) {
    const std::string family = name.substr(0, name.find('{'));
    const char* kind = metric.kind == Kind::gauge ? "gauge" : "counter";
    if (family != last) {
      text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", family, metric.help, kind);
    }
    text += fmt::format("{} {}\n", name, metric.value);
    last = family;
  }
  return text;
}

}  // namespace orrery::executor

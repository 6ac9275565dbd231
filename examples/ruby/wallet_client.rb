# A client of the wallet service. Needs Ruby 3.0 and the standard library only.
#
# Run as a program, it transfers 1.00 between the first two wallets with the same currency:
#
#     ruby wallet_client.rb --demo .data/demo.json
#     BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... ruby wallet_client.rb

require 'digest'
require 'erb'
require 'json'
require 'net/http'
require 'openssl'
require 'securerandom'
require 'uri'

# A failed call. `code` is for programs, the text is for people. Without an answer of the service, `code` is nil.
class WalletError < StandardError
  attr_reader :status, :code, :detail, :request_id, :retry_after

  def initialize(text, status: nil, code: nil, detail: nil, request_id: nil, retry_after: nil)
    super(text)
    @status, @code, @detail, @request_id, @retry_after = status, code, detail, request_id, retry_after
  end

  # Whether to send the request again. If it may have been executed, `repeatable` decides.
  def retryable?(repeatable)
    return false if (retry_after || 0) > 60
    return true if %w[GA2013 S002].include?(code) || status == 429

    repeatable && (code.nil? || status >= 500)
  end
end

# Makes calls signed with one API key. Amounts and balances are decimal strings, never floats.
class WalletClient
  ATTEMPTS = 5
  NETWORK_ERRORS = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError,
                    Net::ProtocolError, Net::HTTPBadResponse, URI::InvalidURIError].freeze

  # X-Signature (section 5.2). `path` is the path as sent, without the query string.
  def self.sign(secret, method, path, timestamp, nonce, body)
    message = [method.upcase, path, timestamp, nonce, Digest::SHA256.hexdigest(body)].join("\n")
    [OpenSSL::HMAC.digest('SHA256', secret, message)].pack('m0')
  end

  def initialize(base_url, api_key, api_secret, timeout: 10)
    @base_url, @api_key, @api_secret, @timeout = base_url.chomp('/'), api_key, api_secret, timeout
    @clock_offset = 0
  end

  # Returns `data` of the response. Retries while the service is unavailable or the answer is lost.
  #
  # Give each create a `bizId`: it prevents a second execution. Without one, a lost POST is not retried.
  def call(method, path, query: {}, body: nil)
    target = query.empty? ? path : "#{path}?#{URI.encode_www_form(query)}"
    # Serialized once: the bytes that are hashed are the bytes that are sent.
    payload = body.nil? ? '' : JSON.generate(body)
    repeatable = method == 'GET' || payload.include?('"bizId":')
    attempt = 1
    begin
      send_once(method, target, payload)
    rescue WalletError => e
      raise if attempt == ATTEMPTS || !e.retryable?(repeatable)

      sleep(e.retry_after || 0.1 * 2**attempt)
      attempt += 1
      retry
    end
  end

  # Yields the records of all pages of a list; without a block, returns an enumerator of them.
  def pages(path, **query)
    return enum_for(:pages, path, **query) unless block_given?

    page = 0
    loop do
      data = call('GET', path, query: { **query, page: page })
      data['content'].each { |record| yield record }
      page += 1
      break if page >= data['page']['totalPages']
    end
  end

  # Creates a transfer and returns the order. With the same `biz_id`, the money moves once.
  def create_transfer(source, target, amount, currency, biz_id: SecureRandom.uuid)
    body = { sourceWalletId: source, targetWalletId: target, amount: amount, currency: currency, bizId: biz_id }
    call('POST', '/api/v1/transfer/command/create', body: body)
  end

  private

  # Sends one attempt, with a nonce of its own.
  def send_once(method, target, body)
    response = request(method, target, body)
    answer = JSON.parse(response.body)
    raise JSON::ParserError, 'no code' unless answer.is_a?(Hash) && answer.key?('code')
    return answer['data'] if answer['success']

    fail_with(response, answer)
  rescue *NETWORK_ERRORS, JSON::ParserError => e
    unknown = method == 'POST' ? ' The outcome is unknown: repeat the call with the same bizId.' : ''
    raise WalletError, "#{@base_url} did not answer as the wallet service (#{e.message}).#{unknown}"
  end

  def request(method, target, body)
    timestamp, nonce = (Time.now + @clock_offset).to_i.to_s, SecureRandom.uuid
    headers = {
      'X-Api-Key' => @api_key,
      'X-Timestamp' => timestamp,
      'X-Nonce' => nonce,
      'X-Signature' => self.class.sign(@api_secret, method, target.split('?').first, timestamp, nonce, body),
      'X-LOCALE' => 'en-US',
      'Content-Type' => 'application/json'
    }
    url = URI(@base_url)
    # Net::HTTP would repeat a GET by itself, with the same nonce.
    options = { use_ssl: url.scheme == 'https', open_timeout: @timeout, read_timeout: @timeout, max_retries: 0 }
    Net::HTTP.start(url.host, url.port, **options) do |http|
      http.send_request(method, target, body.empty? ? nil : body, headers)
    end
  end

  def fail_with(response, answer)
    code, message, detail = answer.values_at('code', 'message', 'detail')
    # The clock may be wrong: use that of the service. What is signed for later can be kept until then.
    @clock_offset = [answer['timestamp'] / 1000.0 - Time.now.to_f, 86_400].min if code == 'GA2013'
    request_id = response['X-Request-Id']
    raise WalletError.new(
      "#{code} #{message} (HTTP #{response.code}, request #{request_id}): #{detail}",
      status: response.code.to_i, code: code, detail: detail, request_id: request_id,
      retry_after: response['Retry-After']&.slice(/\A\d+\z/)&.to_i
    )
  end
end

# Base URL, key and secret: from the demo file if there is one, else from the environment.
def find_access(demo_file)
  begin
    return JSON.parse(File.read(demo_file)).fetch_values('baseUrl', 'apiKey', 'apiSecret') if demo_file
  rescue SystemCallError, JSON::ParserError, KeyError, NoMethodError, TypeError
    raise WalletError, "#{demo_file} is not a demo.json: start the service with npm start."
  end
  access = ENV.values_at('BASE_URL', 'API_KEY', 'API_SECRET')
  return access if access.all? { |value| value && !value.empty? }

  raise WalletError, 'Set BASE_URL, API_KEY, API_SECRET, or add --demo with the demo.json of npm start.'
end

# The first two wallets with the same currency.
def first_pair(wallets)
  first_by_currency = {}
  wallets.each do |wallet|
    first = first_by_currency[wallet['currency']]
    return first, wallet if first

    first_by_currency[wallet['currency']] = wallet
  end
  raise WalletError, 'No two active wallets have the same currency: create another wallet.'
end

def run_demo(client)
  source, target = first_pair(client.pages('/api/v1/wallets', status: 'ACTIVE', sort: 'createdAt,asc', size: 5))
  currency = source['currency']
  wallet_ids = [source['walletId'], target['walletId']]
  print_balances = lambda do |time|
    wallet_ids.each do |id|
      puts "#{time}  #{id}  #{client.call('GET', "/api/v1/wallets/#{id}/balance")['balance']} #{currency}"
    end
  end

  print_balances.call('before')
  decimals = source['balance'].split('.')[1]
  amount = decimals ? "1.#{'0' * decimals.length}" : '1'
  created = client.create_transfer(*wallet_ids, amount, currency)
  order = client.call('GET', "/api/v1/transfer/query/orders/#{ERB::Util.url_encode(created['bizId'])}")
  puts "moved   #{order['amount']} #{currency} as #{order['transferId']}, #{order['status']}"
  print_balances.call('after ')
end

# Prints the signature of each test vector.
def print_signatures(vectors_file)
  JSON.parse(File.read(vectors_file)).each do |vector|
    secret, method, target, timestamp, nonce, body =
      vector.fetch_values('secret', 'method', 'target', 'timestamp', 'nonce', 'bodyBase64')
    puts WalletClient.sign(secret, method, target.split('?').first, timestamp, nonce, body.unpack1('m'))
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    case ARGV
    in [] then run_demo(WalletClient.new(*find_access(nil)))
    in ['--demo', file] then run_demo(WalletClient.new(*find_access(file)))
    in ['--vectors', file] then print_signatures(file)
    else raise WalletError, 'Use --demo FILE, --vectors FILE or no argument.'
    end
  rescue WalletError => e
    abort e.message
  end
end

<?php
/**
 * A client of the wallet service. Needs PHP 8.1 with the openssl extension (for https), and no libraries.
 *
 * Run as a program, it transfers 1.00 between the first two wallets with the same currency:
 *
 *     php wallet_client.php --demo .data/demo.json
 *     BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... php wallet_client.php
 */

declare(strict_types=1);

/** A failed call. `apiCode` is for programs, the text is for people. Without an answer of the service, it is null. */
final class WalletException extends Exception
{
    public function __construct(
        string $text,
        public readonly int $status = 0,
        public readonly ?string $apiCode = null,
        public readonly ?string $detail = null,
        public readonly ?string $requestId = null,
        public readonly int $retryAfter = 0,
    ) {
        parent::__construct($text);
    }

    /** Whether to send the request again. If it may have been executed, `$isRepeatable` decides. */
    public function isRetryable(bool $isRepeatable): bool
    {
        if ($this->retryAfter > 60) {
            return false;
        }
        if (in_array($this->apiCode, ['GA2013', 'S002'], true) || $this->status === 429) {
            return true;
        }
        return $isRepeatable && ($this->apiCode === null || $this->status >= 500);
    }
}

/** Makes calls signed with one API key. Amounts and balances are decimal strings, never floats. */
final class WalletClient
{
    private const ATTEMPTS = 5;
    private readonly string $baseUrl;
    private int $clockOffset = 0;

    public function __construct(
        string $baseUrl,
        private readonly string $apiKey,
        private readonly string $apiSecret,
        private readonly float $timeout = 10.0,
    ) {
        $this->baseUrl = rtrim($baseUrl, '/');
    }

    /** X-Signature (section 5.2). The path is the path as sent, without the query string. */
    public static function sign(
        string $secret,
        string $method,
        string $path,
        string $timestamp,
        string $nonce,
        string $body,
    ): string {
        $message = implode("\n", [strtoupper($method), $path, $timestamp, $nonce, hash('sha256', $body)]);
        return base64_encode(hash_hmac('sha256', $message, $secret, true));
    }

    /**
     * Returns `data` of the response. Retries while the service is unavailable or the answer is lost.
     *
     * Give each create a `bizId`: it prevents a second execution. Without one, a lost POST is not retried.
     */
    public function call(string $method, string $path, array $query = [], ?array $body = null): array
    {
        // A list is a repeated parameter: sort=…&sort=…, not sort[0]=…
        $target = $query ? $path . '?' . preg_replace('/%5B\d+%5D=/', '=', http_build_query($query)) : $path;
        // Serialized once: the bytes that are hashed are the bytes that are sent.
        $payload = $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR);
        $isRepeatable = $method === 'GET' || str_contains($payload, '"bizId":');
        for ($attempt = 1; ; $attempt++) {
            try {
                return $this->send($method, $target, $payload);
            } catch (WalletException $error) {
                if ($attempt === self::ATTEMPTS || !$error->isRetryable($isRepeatable)) {
                    throw $error;
                }
                usleep($error->retryAfter * 1_000_000 ?: 100_000 * 2 ** $attempt);
            }
        }
    }

    /** Yields the records of all pages of a list. */
    public function pages(string $path, array $query = []): Generator
    {
        $page = 0;
        do {
            $data = $this->call('GET', $path, [...$query, 'page' => $page]);
            yield from $data['content'];
        } while (++$page < $data['page']['totalPages']);
    }

    /** Creates a transfer and returns the order. With the same bizId, the money moves once. */
    public function createTransfer(
        string $source,
        string $target,
        string $amount,
        string $currency,
        ?string $bizId = null,
    ): array {
        return $this->call('POST', '/api/v1/transfer/command/create', body: [
            'sourceWalletId' => $source,
            'targetWalletId' => $target,
            'amount' => $amount,
            'currency' => $currency,
            'bizId' => $bizId ?? bin2hex(random_bytes(16)),
        ]);
    }

    /** Sends one attempt, with a nonce of its own. */
    private function send(string $method, string $target, string $body): array
    {
        [$timestamp, $nonce] = [(string) (time() + $this->clockOffset), bin2hex(random_bytes(16))];
        $path = explode('?', $target)[0];
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => [
                "X-Api-Key: $this->apiKey",
                "X-Timestamp: $timestamp",
                "X-Nonce: $nonce",
                'X-Signature: ' . self::sign($this->apiSecret, $method, $path, $timestamp, $nonce, $body),
                'X-LOCALE: en-US',
                'Content-Type: application/json',
            ],
            'content' => $body,
            'timeout' => $this->timeout,
            'ignore_errors' => true, // Return the body of an error response too.
            'follow_location' => 0, // A redirect would send the signed request to another server.
        ]]);
        $http_response_header = [];
        $text = @file_get_contents($this->baseUrl . $target, false, $context);
        $answer = json_decode((string) $text, true);
        if (!isset($answer['code'])) {
            $reason = $text === false ? preg_replace('/.*: /', '', error_get_last()['message']) : 'no code';
            $unknown = $method === 'POST' ? ' The outcome is unknown: repeat the call with the same bizId.' : '';
            throw new WalletException("$this->baseUrl did not answer as the wallet service ($reason).$unknown");
        }
        if ($answer['success']) {
            return $answer['data'];
        }
        ['code' => $code, 'message' => $message, 'timestamp' => $time] = $answer;
        if ($code === 'GA2013') {
            // The clock may be wrong: use that of the service. What is signed for later can be kept until then.
            $this->clockOffset = min(intdiv($time, 1000) - time(), 86400);
        }
        $status = (int) explode(' ', $http_response_header[0])[1];
        $headers = implode("\n", $http_response_header);
        $requestId = preg_match('/^X-Request-Id: (.*)$/mi', $headers, $match) ? $match[1] : null;
        $retryAfter = preg_match('/^Retry-After: (\d+)$/mi', $headers, $match) ? (int) $match[1] : 0;
        $detail = $answer['detail'] ?? null;
        $summary = "$code $message (HTTP $status, request $requestId): $detail";
        throw new WalletException($summary, $status, $code, $detail, $requestId, $retryAfter);
    }
}

/** Base URL, key and secret: from the demo file if there is one, else from the environment. */
function findAccess(?string $demoFile): array
{
    if ($demoFile !== null) {
        $demo = json_decode((string) @file_get_contents($demoFile), true);
        if (!isset($demo['baseUrl'], $demo['apiKey'], $demo['apiSecret'])) {
            throw new WalletException("$demoFile is not a demo.json: start the service with npm start.");
        }
        return [$demo['baseUrl'], $demo['apiKey'], $demo['apiSecret']];
    }
    $access = array_filter(array_map(getenv(...), ['BASE_URL', 'API_KEY', 'API_SECRET']));
    if (count($access) < 3) {
        throw new WalletException('Set BASE_URL, API_KEY, API_SECRET, or add --demo with the demo.json of npm start.');
    }
    return $access;
}

/** The first two wallets with the same currency. */
function firstPair(iterable $wallets): array
{
    $firstByCurrency = [];
    foreach ($wallets as $wallet) {
        $first = $firstByCurrency[$wallet['currency']] ??= $wallet;
        if ($first !== $wallet) {
            return [$first, $wallet];
        }
    }
    throw new WalletException('No two active wallets have the same currency: create another wallet.');
}

function printBalances(WalletClient $client, string $when, array ...$wallets): void
{
    foreach ($wallets as ['walletId' => $id, 'currency' => $currency]) {
        $balance = $client->call('GET', "/api/v1/wallets/$id/balance")['balance'];
        echo "$when  $id  $balance $currency\n";
    }
}

function runDemo(WalletClient $client): void
{
    $query = ['status' => 'ACTIVE', 'sort' => 'createdAt,asc', 'size' => 5];
    [$source, $target] = firstPair($client->pages('/api/v1/wallets', $query));
    printBalances($client, 'before', $source, $target);
    $decimals = explode('.', $source['balance'])[1] ?? '';
    $amount = $decimals === '' ? '1' : '1.' . str_repeat('0', strlen($decimals));
    $created = $client->createTransfer($source['walletId'], $target['walletId'], $amount, $source['currency']);
    $order = $client->call('GET', '/api/v1/transfer/query/orders/' . rawurlencode($created['bizId']));
    echo "moved   {$order['amount']} {$order['currency']} as {$order['transferId']}, {$order['status']}\n";
    printBalances($client, 'after ', $source, $target);
}

/** Prints the signature of each test vector. */
function printSignatures(string $vectorsFile): void
{
    foreach (json_decode(file_get_contents($vectorsFile), true, flags: JSON_THROW_ON_ERROR) as $v) {
        [$path, $body] = [explode('?', $v['target'])[0], base64_decode($v['bodyBase64'])];
        echo WalletClient::sign($v['secret'], $v['method'], $path, $v['timestamp'], $v['nonce'], $body), "\n";
    }
}

if (realpath($argv[0]) === __FILE__) {
    try {
        match (true) {
            $argc === 1 => runDemo(new WalletClient(...findAccess(null))),
            $argc === 3 && $argv[1] === '--demo' => runDemo(new WalletClient(...findAccess($argv[2]))),
            $argc === 3 && $argv[1] === '--vectors' => printSignatures($argv[2]),
            default => throw new WalletException('Use --demo FILE, --vectors FILE or no argument.'),
        };
    } catch (WalletException $error) {
        fwrite(STDERR, $error->getMessage() . "\n");
        exit(1);
    }
}

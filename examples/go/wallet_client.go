// A client of the wallet service. Needs Go 1.19 and the standard library only.
//
// Run as a program, it transfers 1.00 between the first two wallets with the same currency:
//
//	go run wallet_client.go --demo .data/demo.json
//	BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... go run wallet_client.go
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Error is a failed call. Code is for programs, the text is for people. Without an answer of the service, Code is empty.
type Error struct {
	Status                           int
	Code, Message, Detail, RequestID string
	RetryAfter                       time.Duration
	text                             string
}

func (e *Error) Error() string { return e.text }

// isRetryable says whether to send the request again. If it may have been executed, isRepeatable decides.
func (e *Error) isRetryable(isRepeatable bool) bool {
	if e.RetryAfter > time.Minute {
		return false
	}
	if e.Code == "GA2013" || e.Code == "S002" || e.Status == 429 {
		return true
	}
	return isRepeatable && (e.Code == "" || e.Status >= 500)
}

// Sign returns X-Signature (section 5.2). The path is the path as sent, without the query string.
func Sign(secret, method, path, timestamp, nonce string, body []byte) string {
	bodyHash := sha256.Sum256(body)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n%x", strings.ToUpper(method), path, timestamp, nonce, bodyHash)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Client makes calls signed with one API key. Amounts and balances are decimal strings, never floats.
type Client struct {
	baseURL, apiKey, apiSecret string
	http                       http.Client
	clockOffset                atomic.Int64 // in nanoseconds
}

func NewClient(baseURL, apiKey, apiSecret string) *Client {
	client := &Client{baseURL: strings.TrimSuffix(baseURL, "/"), apiKey: apiKey, apiSecret: apiSecret}
	client.http.Timeout = 10 * time.Second
	// A redirect would send the signed request to another server.
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

const attempts = 5

// Call decodes the data of the response into result. It retries while the service is unavailable or the answer is lost.
//
// Give each create a bizId: it prevents a second execution. Without one, a lost POST is not retried.
func (c *Client) Call(method, path string, query url.Values, body, result any) error {
	target := path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	// Serialized once: the bytes that are hashed are the bytes that are sent.
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return err
		}
	}
	isRepeatable := method == "GET" || bytes.Contains(payload, []byte(`"bizId":`))
	for attempt := 1; ; attempt++ {
		data, err := c.send(method, target, payload)
		if err == nil {
			return json.Unmarshal(data, result)
		}
		if attempt == attempts || !err.isRetryable(isRepeatable) {
			return err
		}
		pause := err.RetryAfter
		if pause == 0 {
			pause = 100 * time.Millisecond << attempt
		}
		time.Sleep(pause)
	}
}

// send makes one attempt, with a nonce of its own.
func (c *Client) send(method, target string, body []byte) (json.RawMessage, *Error) {
	timestamp, nonce := strconv.FormatInt(time.Now().Add(time.Duration(c.clockOffset.Load())).Unix(), 10), randomID()
	path, _, _ := strings.Cut(target, "?")
	var answer struct {
		Success               bool
		Code, Message, Detail string
		Timestamp             int64
		Data                  json.RawMessage
	}
	request, err := http.NewRequest(method, c.baseURL+target, bytes.NewReader(body))
	var response *http.Response
	if err == nil {
		request.Header.Set("X-Api-Key", c.apiKey)
		request.Header.Set("X-Timestamp", timestamp)
		request.Header.Set("X-Nonce", nonce)
		request.Header.Set("X-Signature", Sign(c.apiSecret, method, path, timestamp, nonce, body))
		request.Header.Set("X-LOCALE", "en-US")
		request.Header.Set("Content-Type", "application/json")
		response, err = c.http.Do(request)
	}
	if err == nil {
		defer response.Body.Close()
		err = json.NewDecoder(response.Body).Decode(&answer)
	}
	if err == nil && answer.Code == "" {
		err = errors.New("no code")
	}
	if err != nil {
		text := fmt.Sprintf("%s did not answer as the wallet service (%v).", c.baseURL, err)
		if method == "POST" {
			text += " The outcome is unknown: repeat the call with the same bizId."
		}
		return nil, &Error{text: text}
	}
	if answer.Success {
		return answer.Data, nil
	}
	if answer.Code == "GA2013" { // The clock may be wrong: use that of the service. What is signed for later can be kept until then.
		offset := time.Until(time.UnixMilli(answer.Timestamp))
		if offset > 24*time.Hour {
			offset = 24 * time.Hour
		}
		c.clockOffset.Store(int64(offset))
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	requestID := response.Header.Get("X-Request-Id")
	text := fmt.Sprintf("%s %s (HTTP %d, request %s): %s", answer.Code, answer.Message, response.StatusCode, requestID, answer.Detail)
	return nil, &Error{response.StatusCode, answer.Code, answer.Message, answer.Detail, requestID, time.Duration(seconds) * time.Second, text}
}

// Pages calls visit with the records of all pages of a list, until visit returns false.
func Pages[Record any](c *Client, path string, query url.Values, visit func(Record) bool) error {
	for page := 0; ; page++ {
		query.Set("page", strconv.Itoa(page))
		var data struct {
			Content []Record
			Page    struct{ TotalPages int }
		}
		if err := c.Call("GET", path, query, nil, &data); err != nil {
			return err
		}
		for _, record := range data.Content {
			if !visit(record) {
				return nil
			}
		}
		if page+1 >= data.Page.TotalPages {
			return nil
		}
	}
}

type Wallet struct{ WalletID, Name, Currency, Status, Balance string }

type Order struct{ TransferID, BizID, Status, Amount, Currency string }

// CreateTransfer creates a transfer. With the same bizID, the money moves once.
func (c *Client) CreateTransfer(source, target, amount, currency, bizID string) (order Order, err error) {
	err = c.Call("POST", "/api/v1/transfer/command/create", nil, map[string]string{
		"sourceWalletId": source, "targetWalletId": target, "amount": amount, "currency": currency, "bizId": bizID,
	}, &order)
	return order, err
}

func randomID() string {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic(err)
	}
	return hex.EncodeToString(id)
}

// findAccess takes base URL, key and secret from the demo file if there is one, else from the environment.
func findAccess(demoFile string) *Client {
	access := struct{ BaseURL, APIKey, APISecret string }{os.Getenv("BASE_URL"), os.Getenv("API_KEY"), os.Getenv("API_SECRET")}
	if demoFile != "" {
		text, err := os.ReadFile(demoFile)
		if err != nil || json.Unmarshal(text, &access) != nil || access.APISecret == "" {
			log.Fatalf("%s is not a demo.json: start the service with npm start.", demoFile)
		}
	}
	if access.BaseURL == "" || access.APIKey == "" || access.APISecret == "" {
		log.Fatal("Set BASE_URL, API_KEY, API_SECRET, or add --demo with the demo.json of npm start.")
	}
	return NewClient(access.BaseURL, access.APIKey, access.APISecret)
}

// firstPair returns the first two wallets with the same currency.
func firstPair(client *Client) (source, target Wallet) {
	firstByCurrency := map[string]Wallet{}
	query := url.Values{"status": {"ACTIVE"}, "sort": {"createdAt,asc"}, "size": {"5"}}
	check(Pages(client, "/api/v1/wallets", query, func(wallet Wallet) bool {
		first, found := firstByCurrency[wallet.Currency]
		if found {
			source, target = first, wallet
		}
		firstByCurrency[wallet.Currency] = wallet
		return !found
	}))
	if target.WalletID == "" {
		log.Fatal("No two active wallets have the same currency: create another wallet.")
	}
	return source, target
}

func printBalances(client *Client, when string, wallets ...Wallet) {
	for _, wallet := range wallets {
		var balance struct{ Balance string }
		check(client.Call("GET", "/api/v1/wallets/"+wallet.WalletID+"/balance", nil, nil, &balance))
		fmt.Printf("%s  %s  %s %s\n", when, wallet.WalletID, balance.Balance, wallet.Currency)
	}
}

func runDemo(client *Client) {
	source, target := firstPair(client)
	printBalances(client, "before", source, target)
	amount := "1"
	if _, decimals, found := strings.Cut(source.Balance, "."); found {
		amount += "." + strings.Repeat("0", len(decimals))
	}
	created, err := client.CreateTransfer(source.WalletID, target.WalletID, amount, source.Currency, randomID())
	check(err)
	var order Order
	check(client.Call("GET", "/api/v1/transfer/query/orders/"+url.PathEscape(created.BizID), nil, nil, &order))
	fmt.Printf("moved   %s %s as %s, %s\n", order.Amount, order.Currency, order.TransferID, order.Status)
	printBalances(client, "after ", source, target)
}

// printSignatures prints the signature of each test vector.
func printSignatures(vectorsFile string) {
	var vectors []struct {
		Secret, Method, Target, Timestamp, Nonce string
		BodyBase64                               []byte
	}
	text, err := os.ReadFile(vectorsFile)
	check(err)
	check(json.Unmarshal(text, &vectors))
	for _, v := range vectors {
		path, _, _ := strings.Cut(v.Target, "?")
		fmt.Println(Sign(v.Secret, v.Method, path, v.Timestamp, v.Nonce, v.BodyBase64))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	log.SetFlags(0)
	switch args := os.Args[1:]; {
	case len(args) == 0:
		runDemo(findAccess(""))
	case len(args) == 2 && args[0] == "--demo":
		runDemo(findAccess(args[1]))
	case len(args) == 2 && args[0] == "--vectors":
		printSignatures(args[1])
	default:
		log.Fatal("Use --demo FILE, --vectors FILE or no argument.")
	}
}

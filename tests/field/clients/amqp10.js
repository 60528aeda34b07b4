'use strict';
// node-amqp10 as programs write it.

const { Client, Policy } = require('amqp10');
const { thing, options, report, body, Received, fail } = require('./common');

async function connect(end, again) {
    const sslOptions = end.tls ? { caFile: options.ca, rejectUnauthorized: true } : null;
    const reconnect = again ? { retries: 100, forever: true } : null;
    const client = new Client(Policy.merge({ reconnect, connect: { options: { sslOptions } } }, Policy.Default));
    client.on('client:errorReceived', (error) => { if (!again) fail(error); });
    const url = (end.tls ? 'amqps' : 'amqp') + '://' + end.host + ':' + end.port;
    await client.connect(url, { saslMechanism: 'ANONYMOUS' });
    return client;
}

// Returns the link, and a promise of what came, once it is all.
async function receiver(client, source, more) {
    const received = new Received();
    const link = await client.createReceiver(options.address, { attach: { source }, ...more });
    link.on('errorReceived', fail);
    const whole = new Promise((resolve) => {
        link.on('message', (message) => {
            received.add(message.body);
            if (received.count === options.count) setImmediate(resolve, received);
        });
    });
    return { link, whole };
}

async function sendAll(client) {
    const sender = await client.createSender(options.address);
    const sent = [];
    for (let number = 0; number < options.count; number++) sent.push(sender.send(body(number)));
    await Promise.all(sent);
    return sender;
}

const at = () => ({ address: options.address });

async function exchange() {
    const to = await connect(options.to);
    const more = options.credit > 1 ? {} : { creditQuantum: 1, credit: Policy.Utils.CreditPolicies.RefreshAtEmpty };
    const { whole } = await receiver(to, at(), more);
    const from = await connect(options.from);
    await sendAll(from);
    report('done', { ...(await whole).details, accepted: options.count });
    await from.disconnect();
    await to.disconnect();
}

async function request() {
    const to = await connect(options.to);
    const from = await connect(options.from);
    const replies = await to.createSender(null);
    const service = await to.createReceiver(options.address);
    service.on('message', ({ properties, body: asked }) => {
        const { replyTo, correlationId } = properties;
        replies.send(asked.toUpperCase(), { properties: { to: replyTo, correlationId } });
    });
    const inbox = await from.createReceiver(null, { attach: { source: { address: null, dynamic: true } } });
    const replyTo = inbox.remote.attach.source.address;
    const waiting = new Map();
    inbox.on('message', ({ properties, body: reply }) => waiting.get(properties.correlationId)(reply));
    const sender = await from.createSender(options.address);
    for (let number = 0; number < options.count; number++) {
        const reply = new Promise((resolve) => waiting.set(String(number), resolve));
        await sender.send('ping ' + number, { properties: { replyTo, correlationId: String(number) } });
        if (await reply !== 'PING ' + number) fail('another reply');
    }
    report('done', { answered: options.count });
    await from.disconnect();
    await to.disconnect();
}

async function browse() {
    const client = await connect(options.from);
    await (await sendAll(client)).detach();
    const browser = await receiver(client, { ...at(), distributionMode: 'copy' });
    const browsed = await browser.whole;
    await browser.link.detach();
    const consumer = await receiver(client, at());
    const received = await consumer.whole;
    report('done', { browsed: browsed.details, ...received.details });
    await consumer.link.detach();
    await client.disconnect();
}

// Does not wait for an answer in between.
async function unsubscribe() {
    const client = await connect(options.from);
    const { link } = await receiver(client, { ...at(), durable: 2, expiryPolicy: 'never' }, { name: options.address });
    report('done');
    await Promise.all([link.detach({ closed: true }), client.disconnect()]);
}

async function hold() {
    const client = await connect(options.from);
    await sendAll(client);
    const attach = { source: at(), rcvSettleMode: 1 };
    const link = await client.createReceiver(options.address, { attach, credit: Policy.Utils.CreditPolicies.RefreshSettled(50) });
    let held = 0;
    link.on('message', () => {
        held += 1;
        if (held === options.count) report('held');
    });
}

async function receive() {
    const client = await connect(options.from);
    report('done', (await (await receiver(client, at())).whole).details);
    await client.disconnect();
}

// Sends to itself before and after its router was killed.
async function reconnect() {
    const client = await connect(options.from, true);
    let lost = false;
    let over = false;
    const policy = { reattach: { retries: 100, forever: true } };
    const sender = await client.createSender(options.address, policy);
    const link = await client.createReceiver(options.address, policy);
    link.on('message', (message) => {
        if (message.body === 'before' && !lost) report('ready');
        if (message.body !== 'after' || over) return;
        over = true;
        report('done');
        setImmediate(() => client.disconnect());
    });
    sender.on('detached', () => { lost = true; });
    sender.on('attached', () => sender.send('after').catch(() => {}));
    sender.send('before').catch(() => {});
}

({ exchange, request, browse, unsubscribe, hold, receive, reconnect })[thing]();

import { useState, type SubmitEvent } from "react";
import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Card, CardBody, CardTitle } from "@patternfly/react-core/dist/esm/components/Card";
import { ActionGroup, Form, FormGroup } from "@patternfly/react-core/dist/esm/components/Form";
import { TextInput } from "@patternfly/react-core/dist/esm/components/TextInput";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/esm/components/ToggleGroup";

import { login, useSession } from "../store";
import { ThemeSwitch } from "./ThemeSwitch";

const TOKENS = ["OAUTHBEARER", "XOAUTH2"];
const PASSWORDLESS = ["ANONYMOUS", "EXTERNAL"];

/** Return whether the browser would send credentials over the network without TLS. */
const isInClear = (): boolean =>
  window.location.protocol === "http:" && !["localhost", "127.0.0.1", "[::1]"].includes(window.location.hostname);

/** Asks the user for a name and a password, or for a token. */
export function Login() {
  const { offered, problem, state } = useSession();
  const [kind, setKind] = useState<"password" | "token">("password");
  const [user, setUser] = useState("");
  const [secret, setSecret] = useState("");
  const [host, setHost] = useState("");
  const virtualHost = host.trim() === "" ? {} : { host: host.trim() };
  const isBusy = state === "connecting";
  const offersTokens = offered.some((name) => TOKENS.includes(name));
  const offersPasswordless = offered.length === 0 || offered.some((name) => PASSWORDLESS.includes(name));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setSecret("");
    void login({
      credentials: kind === "token" ? { kind, user, token: secret } : { kind, user, password: secret },
      ...virtualHost,
    });
  };
  return (
    <main className="console-login">
      <div className="console-login-theme">
        <ThemeSwitch />
      </div>
      <Card>
        <CardTitle component="h1">Log in to trouter</CardTitle>
        <CardBody>
          <Form onSubmit={submit}>
            {problem !== "" && <Alert variant="danger" isInline title={problem} />}
            {isInClear() && (
              <Alert variant="warning" isInline title="This page was loaded without TLS: a password crosses the network in clear." />
            )}
            {offersTokens && (
              <ToggleGroup aria-label="Kind of login">
                <ToggleGroupItem text="Password" isSelected={kind === "password"} onChange={() => setKind("password")} />
                <ToggleGroupItem text="Token" isSelected={kind === "token"} onChange={() => setKind("token")} />
              </ToggleGroup>
            )}
            <FormGroup label="User" fieldId="user" isRequired={kind === "password"}>
              <TextInput
                id="user"
                autoComplete="username"
                value={user}
                onChange={(_event, value) => setUser(value)}
                isRequired={kind === "password"}
              />
            </FormGroup>
            <FormGroup label={kind === "token" ? "Token" : "Password"} fieldId="secret" isRequired>
              <TextInput
                id="secret"
                type="password"
                autoComplete="current-password"
                value={secret}
                onChange={(_event, value) => setSecret(value)}
                isRequired
              />
            </FormGroup>
            <FormGroup label="Virtual host or tenant" fieldId="host">
              <TextInput
                id="host"
                value={host}
                placeholder={window.location.hostname}
                onChange={(_event, value) => setHost(value)}
              />
            </FormGroup>
            <ActionGroup>
              <Button type="submit" isLoading={isBusy} isDisabled={isBusy}>
                Log in
              </Button>
              {offersPasswordless && (
                <Button variant="link" isDisabled={isBusy} onClick={() => void login({ credentials: { kind: "none" }, ...virtualHost })}>
                  Connect without a password
                </Button>
              )}
            </ActionGroup>
          </Form>
        </CardBody>
      </Card>
    </main>
  );
}

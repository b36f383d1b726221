// Command argo runs Lua scripts on Kubernetes objects as Argo CD runs those of argocd-cm: with gopher-lua, the object in the global
// obj, the base, package and table libraries only, time and date of os by require alone, and one second. Each line of its input has
// script and object, and each line of its output result or error.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

type call struct {
	Script string         `json:"script"`
	Object map[string]any `json:"object"`
}

func main() {
	// argocd-server may have a zone.
	time.Local = time.FixedZone("east", 5*60*60)
	calls := bufio.NewScanner(os.Stdin)
	calls.Buffer(nil, 1<<20)
	for calls.Scan() {
		var call call
		answer := map[string]any{}
		if err := json.Unmarshal(calls.Bytes(), &call); err != nil {
			fmt.Fprintln(os.Stderr, "argo:", err)
			os.Exit(1)
		}
		if result, err := run(call); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["result"] = result
		}
		line, err := json.Marshal(answer)
		if err != nil {
			fmt.Fprintln(os.Stderr, "argo:", err)
			os.Exit(1)
		}
		fmt.Println(string(line))
	}
}

func run(call call) (any, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	state.PreloadModule("os", safeOS)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", toLua(state, call.Object))
	script, known := compiled[call.Script]
	if !known {
		function, err := state.LoadString(call.Script)
		if err != nil {
			return nil, err
		}
		script = function.Proto
		compiled[call.Script] = script
	}
	state.Push(state.NewFunctionFromProto(script))
	if err := state.PCall(0, lua.MultRet, nil); err != nil {
		return nil, err
	}
	return fromLua(state.Get(-1))
}

// compiled has the scripts that ran before. Argo CD 3.6 compiles each once; others compile it for each run.
var compiled = map[string]*lua.FunctionProto{}

// safeOS has the functions of os that Argo CD offers. Its date is gopher-lua's, but for one thing: with a second argument the time is
// local, whatever the format says.
func safeOS(state *lua.LState) int {
	lua.OpenOs(state)
	whole := state.Get(-1).(*lua.LTable)
	safe := state.NewTable()
	safe.RawSetString("time", whole.RawGetString("time"))
	date := whole.RawGetString("date")
	safe.RawSetString("date", state.NewFunction(func(state *lua.LState) int {
		arguments := []lua.LValue{}
		for index := 1; index <= state.GetTop(); index++ {
			arguments = append(arguments, state.Get(index))
		}
		if len(arguments) > 1 {
			arguments[0] = lua.LString(strings.TrimLeft(arguments[0].String(), "!"))
		}
		state.Push(date)
		for _, argument := range arguments {
			state.Push(argument)
		}
		state.Call(len(arguments), 1)
		return 1
	}))
	state.SetGlobal("os", lua.LNil)
	state.Push(safe)
	return 1
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, element := range value {
			table.Append(toLua(state, element))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, element := range value {
			table.RawSetString(key, toLua(state, element))
		}
		return table
	}
	return lua.LNil
}

// fromLua makes a list of an empty table, as Argo CD does.
func fromLua(value lua.LValue) (any, error) {
	switch value := value.(type) {
	case lua.LBool:
		return bool(value), nil
	case lua.LNumber:
		return float64(value), nil
	case lua.LString:
		return string(value), nil
	case *lua.LNilType:
		return nil, nil
	case *lua.LTable:
		return fromTable(value)
	}
	return nil, fmt.Errorf("a %s is no JSON", value.Type())
}

func fromTable(table *lua.LTable) (any, error) {
	list, object := []any{}, map[string]any{}
	var failed error
	table.ForEach(func(key, element lua.LValue) {
		value, err := fromLua(element)
		if err != nil {
			failed = err
		}
		if name, isName := key.(lua.LString); isName {
			object[string(name)] = value
		} else if key == lua.LNumber(len(list)+1) {
			list = append(list, value)
		} else {
			failed = fmt.Errorf("a list with gaps is no JSON")
		}
	})
	if failed == nil && len(list) > 0 && len(object) > 0 {
		failed = fmt.Errorf("a table with both kinds of keys is no JSON")
	}
	if len(object) > 0 {
		return object, failed
	}
	return list, failed
}
